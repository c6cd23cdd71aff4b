/* Events: news from the server, let go of while nobody looks, and gone on with from where they were. */
"use strict";
(function (L) {
  const HIDDEN = 20000; // a browser gives one server six connections, and each page in sight needs one of them
  const AGAIN = 3000;

  const WORDS = { waiting: "connecting …", live: "live", lost: "connection lost, trying again …", resting: "paused" };

  /** Calls `handlers[kind](data)` for every event of `address(mark)`, where `mark` is that of the last one. */
  L.follow = function (address, handlers, says) {
    let source = null, mark = "", again = 0, rest = 0;

    function open() {
      window.clearTimeout(again);
      if (source) return;
      source = new EventSource(address(mark));
      source.onopen = () => says("live");
      source.onerror = () => {
        says("lost");
        if (source && source.readyState === EventSource.CLOSED) {
          close();
          again = window.setTimeout(open, AGAIN);
        }
      };
      for (const [kind, handler] of Object.entries(handlers)) {
        source.addEventListener(kind, (event) => {
          mark = event.lastEventId || mark;
          handler(JSON.parse(event.data));
        });
      }
    }

    function close() {
      if (source) source.close();
      source = null;
    }

    function pause() {
      window.clearTimeout(again);
      close();
      says("resting");
    }

    document.addEventListener("visibilitychange", () => {
      window.clearTimeout(rest);
      if (document.hidden) rest = window.setTimeout(pause, HIDDEN);
      else open();
    });
    window.addEventListener("pagehide", pause);
    window.addEventListener("pageshow", (event) => event.persisted && open());
    says("waiting");
    open();
  };

  /** Where it is said whether news come: the element, and what to call with `waiting`, `live`, `lost` or `resting`. */
  L.status = function () {
    const text = L.el("span", {});
    const element = L.el("span", { class: "status", role: "status" }, L.el("span", { class: "dot", "aria-hidden": "true" }), text);
    const says = (word) => {
      element.dataset.is = word;
      if (text.textContent !== WORDS[word]) text.textContent = WORDS[word];
    };
    return [element, says];
  };
})(window.Leadline);
