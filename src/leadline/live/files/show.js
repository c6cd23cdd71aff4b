/* The page of the runs that are named in the address, growing with them. */
"use strict";
(function (L) {
  const PATIENCE = 2500; // so long the runs wait for each other, so that they come in the order of the address
  const words = [...new Set(new URLSearchParams(window.location.search).getAll("run"))];
  const view = L.show(document.getElementById("leadline"), []);
  const notices = document.getElementById("notices");
  const names = new Map(), early = new Map(), notes = new Map();
  let waiting = true;

  function begin() {
    if (!waiting) return;
    waiting = false;
    words.forEach((word) => early.has(word) && put(early.get(word)));
    early.clear();
  }

  function put(run) {
    if (view.ids().includes(run.id)) view.replace(run.id, run);
    else view.add(run);
  }

  function called(id, name) {
    names.set(id, name);
    document.title = `${words.map((word) => names.get(word) || word).join(", ")} · Leadline`;
  }

  /** What is to be said of a run beside its page; one notice a run, none without lines. */
  function note(id, lines, tone) {
    const said = JSON.stringify([lines, tone]);
    if (notes.get(id)?.said === said) return;
    notes.get(id)?.element.remove();
    notes.delete(id);
    if (!lines.length) return;
    const element = L.el("p", { class: `notice ${tone}` }, L.el("strong", {}, names.get(id) || id), `: ${lines.join("; ")}`);
    notes.set(id, { said, element });
    notices.append(element);
  }

  const handlers = {
    run(run) {
      called(run.id, run.name);
      note(run.id, [], "");
      if (waiting) early.set(run.id, run);
      else put(run);
      if (waiting && early.size === words.length) begin();
    },
    gone({ id, name, why }) {
      called(id, name);
      early.delete(id);
      if (view.ids().includes(id)) view.state(id, "unreadable", null);
      note(id, [why, view.ids().includes(id) ? "what was read before is still shown" : "it is shown as soon as it is there"], "bad");
      if (waiting && words.length === 1) begin();
    },
    readings({ id, readings }) {
      now(id);
      view.append(id, readings);
    },
    state({ id, state, outcome, notes }) {
      now(id);
      view.state(id, state, outcome);
      note(id, notes, "warn");
    },
    judge({ id, diagnosis, rules }) {
      now(id);
      view.judge(id, diagnosis, rules);
    },
    explain({ id, cards }) {
      now(id);
      view.explain(cards);
    },
  };

  /** News of a run that still waits for the others: the waiting is over. */
  const now = (id) => early.has(id) && begin();

  const [status, says] = L.status();
  document.getElementById("bar").append(L.el("a", { href: "./", class: "button" }, "← All runs"), status);
  if (!words.length) {
    notices.append(L.el("p", { class: "notice warn" }, "No run is named in the address; choose from the list of all runs."));
    return;
  }
  window.setTimeout(begin, PATIENCE);
  const asked = words.map((word) => `run=${encodeURIComponent(word)}`).join("&");
  L.follow((mark) => `events/runs?${asked}&after=${encodeURIComponent(mark)}`, handlers, says);
})(window.Leadline);
