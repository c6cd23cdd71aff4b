/* Charts: drawn when they come into sight, a few at a time; read with the mouse, a finger or the arrow keys. */
"use strict";
(function (L) {
  const SLICE = 50; // milliseconds of drawing before the browser gets its turn
  const CONFIG = { displayModeBar: false, responsive: false, showTips: false, scrollZoom: false, doubleClick: "reset" };

  let drawn;
  const drawing = new Promise((resolve) => (drawn = resolve));
  /** Says that plotly is there. */
  L.draws = (plotly) => plotly && drawn(plotly);
  L.drawing = drawing;
  if (window.Plotly) L.draws(window.Plotly);
  else window.addEventListener("load", () => L.draws(window.Plotly));

  let Plotly = null;
  const waiting = new Set(), finished = new Set();
  let asked = false;
  drawing.then((plotly) => ((Plotly = plotly), ask()));

  function ask(chart) {
    if (chart) waiting.add(chart);
    if (asked || !Plotly || !waiting.size) return;
    asked = true;
    requestAnimationFrame(work);
  }

  /** Draws what waits, the charts in sight first, until the slice is over. */
  function work() {
    asked = false;
    const until = performance.now() + SLICE;
    for (const chart of [...waiting].sort((one, other) => other.seen - one.seen)) {
      if (!chart.seen && waiting.size > 1 && performance.now() > until - SLICE / 2) break;
      waiting.delete(chart);
      chart.draw();
      if (performance.now() > until) break;
    }
    if (waiting.size) ask();
    else finished.forEach((resolve) => (finished.delete(resolve), resolve()));
  }

  /** When nothing waits to be drawn any more. */
  L.drawnOut = () => new Promise((resolve) => (waiting.size ? finished.add(resolve) : resolve()));

  const sight = new IntersectionObserver((entries) => entries.forEach((entry) => entry.target.chart.see(entry.isIntersecting)), { rootMargin: "160px" });
  const sizes = new ResizeObserver((entries) => entries.forEach((entry) => entry.target.chart.resize()));

  /** One figure. `needs()` are the courses it is drawn from, `build()` what plotly is to draw and how it is read. */
  class Chart {
    constructor({ title, about, controls = [], needs = () => [], build, height = 250, wide = false, name = title, store = () => [] }) {
      Object.assign(this, { needs, build, height, name, store, seen: false, dirty: true, spec: null, stop: -1, width: 0, closed: false });
      this.plot = L.el("div", { class: "plot", tabindex: "0", role: "img", "aria-label": name, style: { "min-height": `${height}px` } });
      this.cursor = L.el("div", { class: "cursor", hidden: true });
      this.caption = L.el("p", { class: "caption" });
      const head = L.el("figcaption", {}, L.el("h3", {}, title), about || null, L.el("span", { class: "controls" }, controls));
      this.element = L.el("figure", { class: wide ? "chart wide" : "chart" }, head, L.el("div", { class: "stage" }, this.plot, this.cursor), this.caption);
      this.plot.chart = this;
      this.listen();
      sight.observe(this.plot);
      sizes.observe(this.plot);
    }

    listen() {
      const at = (event) => this.place(event.clientX, event.clientY);
      this.plot.addEventListener("pointermove", (event) => this.point(at(event), event));
      this.plot.addEventListener("pointerdown", (event) => this.point(at(event), event));
      this.plot.addEventListener("pointerleave", () => this.leave());
      this.plot.addEventListener("click", (event) => this.spec && this.spec.pick && !this.spec.empty && this.spec.pick(at(event)));
      this.plot.addEventListener("keydown", (event) => this.key(event));
      this.plot.addEventListener("blur", () => this.leave());
    }

    see(seen) {
      this.seen = seen;
      if (seen && this.dirty) ask(this);
    }

    /** What is shown has changed; drawn again at once where it is in sight, else when there is time. */
    change(lazily = false) {
      this.dirty = true;
      if (this.seen || !lazily) ask(this);
    }

    resize() {
      const width = this.plot.clientWidth;
      if (width && Math.abs(width - this.width) > 1 && this.spec && !this.spec.empty) this.change(true);
    }

    draw() {
      if (this.closed || !Plotly || !this.plot.clientWidth) return;
      const missing = this.needs().filter((course) => course && !course.ready);
      if (missing.length) {
        Promise.all(this.store().map((store) => store.need(missing))).then(() => ask(this));
        return;
      }
      this.dirty = false;
      this.paint(this.plot.clientWidth);
    }

    paint(width) {
      this.width = width;
      const spec = (this.spec = this.build());
      this.caption.textContent = spec.caption || "";
      this.element.classList.toggle("empty", Boolean(spec.empty));
      this.plot.setAttribute("aria-label", `${this.name}. ${spec.empty || spec.label || ""}`);
      if (spec.empty) {
        if (this.made) Plotly.purge(this.plot);
        this.made = false;
        L.fill(this.plot, L.el("p", { class: "quiet nothing" }, spec.empty));
        return;
      }
      const layout = { ...spec.layout, width, height: this.height };
      if (!this.made) this.plot.replaceChildren();
      Plotly[this.made ? "react" : "newPlot"](this.plot, spec.data, layout, CONFIG);
      if (!this.made) this.plot.on("plotly_relayout", () => this.mark(this.marked));
      this.made = true;
      this.mark(this.marked);
    }

    /** Data coordinates of a point of the window; null outside of the axes. */
    place(left, top) {
      const full = this.made && this.plot._fullLayout;
      if (!full || !full.xaxis) return null;
      const box = this.plot.getBoundingClientRect();
      const [px, py] = [left - box.left - full.xaxis._offset, top - box.top - full.yaxis._offset];
      if (px < -8 || px > full.xaxis._length + 8 || py < -8 || py > full.yaxis._length + 8) return null;
      return { x: full.xaxis.p2d(px), y: full.yaxis.p2d(py) };
    }

    point(place, event) {
      const told = place && this.spec && this.spec.read ? this.spec.read(place) : null;
      if (!told) return this.leave();
      this.say(told, event.clientX, event.clientY);
    }

    say(told, left, top) {
      this.stop = told.stop ?? -1;
      if (this.spec.point) this.spec.point(told);
      else this.mark(told.x);
      L.tip.show(told, left, top);
    }

    leave() {
      L.tip.hide();
      if (this.spec && this.spec.point) this.spec.point(null);
      else this.mark(null);
    }

    /** Arrow keys go from one place to the next. */
    key(event) {
      const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity };
      const stops = this.spec && this.spec.stops;
      if (event.key === "Escape") return this.leave();
      if (event.key === "Enter" && stops && this.spec.pick && this.stop >= 0) return this.spec.pick({ x: stops[this.stop] });
      if (!(event.key in steps) || !stops || !stops.length || !this.made) return;
      event.preventDefault();
      const stop = this.stop < 0 ? 0 : Math.max(0, Math.min(stops.length - 1, this.stop + steps[event.key]));
      const told = this.spec.read({ x: stops[stop], y: this.spec.level });
      const box = this.plot.getBoundingClientRect(), axis = this.plot._fullLayout.xaxis;
      if (told) this.say({ ...told, stop }, box.left + axis._offset + axis.d2p(stops[stop]), box.top + 24);
    }

    /** The line at a place along x. */
    mark(x) {
      this.marked = x;
      const axis = this.made && this.plot._fullLayout && this.plot._fullLayout.xaxis;
      const left = axis && x !== null && x !== undefined ? axis.d2p(x) : NaN;
      const shown = left >= 0 && left <= axis._length;
      this.cursor.hidden = !shown;
      if (!shown) return;
      const { _offset: top, _length: height } = this.plot._fullLayout.yaxis;
      Object.assign(this.cursor.style, { transform: `translateX(${axis._offset + left}px)`, top: `${top}px`, height: `${height}px` });
    }

    close() {
      this.closed = true;
      waiting.delete(this);
      sight.unobserve(this.plot);
      sizes.unobserve(this.plot);
      if (this.made) Plotly.purge(this.plot);
      this.element.remove();
    }
  }

  /** What is told of the place under the pointer; one for the page, read out to those who do not see it. */
  L.tip = (function () {
    const box = L.el("div", { class: "tip", hidden: true });
    const said = L.el("p", { class: "unseen", "aria-live": "polite" });

    function show({ head, lines = [], rows = [] }, left, top) {
      if (!box.isConnected) document.body.append(box, said);
      L.fill(box, L.el("strong", {}, head), lines.map((line) => L.el("div", { class: "quiet" }, line)), rows.length && L.el("table", {}, rows.map(row)));
      said.textContent = [head, ...rows.map((one) => `${one.name} ${one.value}${one.note ? `, ${one.note}` : ""}`)].join("; ");
      box.hidden = false;
      const { offsetWidth: width, offsetHeight: height } = box;
      const x = left + 16 + width > window.innerWidth ? left - 16 - width : left + 16;
      const y = top + 16 + height > window.innerHeight ? top - 16 - height : top + 16;
      box.style.transform = `translate(${Math.max(4, x)}px, ${Math.max(4, y)}px)`;
    }

    const row = ({ colour, name, value, note }) =>
      L.el("tr", {}, L.el("td", {}, colour && L.el("span", { class: "swatch", style: { background: colour } }), name), L.el("td", { class: "number" }, value), note && L.el("td", { class: "quiet" }, note));

    return { show, hide: () => (box.hidden = true) };
  })();

  /** Everything at once, as wide as paper has it; the theme is light then. */
  L.onPaper = function (charts, width) {
    for (const chart of charts) {
      if (!Plotly || chart.closed || !chart.element.offsetParent || chart.needs().some((course) => course && !course.ready)) continue;
      chart.dirty = true;
      chart.paint(chart.element.classList.contains("wide") ? 2 * width + 16 : width);
    }
  };

  L.Chart = Chart;
})(window.Leadline);
