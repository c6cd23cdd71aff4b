/* The page of one or more runs: what to call.

  Leadline.show(element, runs) -> view
      Fills `element` (its children are taken away) with the page of `runs`, a list of what Python's
      `leadline.page.describe` gives; an empty list is fine. Returns at once: text first, charts when plotly is there
      and they come into sight. Everything a run says is shown as text, never as markup. Nothing is requested.

  view.add(run)             shows another run beside the others; one with an id that is shown replaces that one
  view.replace(id, run)     the same run described anew (it began again, or its folder was judged); its colour, its
                            toggle and the chosen step stay. `run.id` may differ from `id`
  view.remove(id)           takes a run off the page; an id that is not shown is left unsaid
  view.append(id, readings) readings that were written since, as the store's own lines parsed as JSON:
                            {step, probe, name, value, notes?}, value a number, "nan" | "inf" | "-inf", or a list of
                            them. Any number of them, at any rate: they are only put aside here, and drawn at most
                            REFRESH times a second, whatever is in sight. A step read again replaces its former number
  view.state(id, state, outcome)
                            "growing" | "done" | "dead", and what done.json has, or null
  view.judge(id, diagnosis, rules)
                            what `describe` has under these names, when the verdict has changed
  view.explain(cards)       cards of probes that were not among those of `describe`
  view.ids()                the ids shown, in order
  view.close()              stops listening and drawing; the element is left empty

  Steps: the slider follows the newest step until somebody moves it away from the end.
  Several views on one document are not supported.

  Scripts are classic ones, each under an address of its own, and need no inline script:
      <link rel="stylesheet" href="page.css">
      <script src="plotly.js" defer></script> <script src="page.js" defer></script> <script src="yours.js" defer></script>
  `yours.js` calls Leadline.show. plotly may also come later than page.js: Leadline.draws(Plotly) says that it is there
  (without the call `window.Plotly` is looked for when the document has loaded).
  Other helpers a page around this one may use: Leadline.el(tag, attributes, ...children) builds elements (a string
  child becomes text), Leadline.number(value) writes a number as the page does, Leadline.theme.button() is the
  light/dark switch, Leadline.chip(state) the mark of a run's state. Colours, spaces and type are custom properties of
  page.css (--ink, --ink-2, --paper, --card, --line, --accent, --good, --warn, --bad); its classes `card`, `row`,
  `chip`, `quiet`, `number`, `button` may be used.
*/
"use strict";
(function (L) {
  const REFRESH = 4; // times a second, at most, that a growing run is drawn again
  const PAPER = 336; // width of a chart in print, two beside each other

  class View {
    constructor(element, runs) {
      Object.assign(this, { element, all: [], steps: [], step: 0, follow: true, relative: false, fit: false, pinned: null, chosen: new Map(), charts: [], open: new Set() });
      this.slow = { timer: null, last: 0 };
      this.forget = [L.theme.listen(() => this.charts.forEach((chart) => chart.change(true)))];
      this.on(window, "beforeprint", () => (L.theme.force("light"), L.onPaper(this.charts, PAPER)));
      this.on(window, "afterprint", () => (L.theme.force(null), this.charts.forEach((chart) => chart.change())));
      for (const run of runs) this.enter(run);
      this.rebuild();
    }

    on(target, name, listener) {
      target.addEventListener(name, listener);
      this.forget.push(() => target.removeEventListener(name, listener));
    }

    // -- runs --------------------------------------------------------------------------------------------------------

    entries() {
      return this.all;
    }

    shown() {
      return this.all.filter((entry) => entry.on);
    }

    alone() {
      return this.all.length === 1;
    }

    ids() {
      return this.all.map(({ run }) => run.id);
    }

    get(id) {
      return this.all.find(({ run }) => run.id === id);
    }

    enter(run) {
      const taken = new Set(this.all.map(({ number }) => number));
      let number = 0;
      while (taken.has(number)) number++;
      this.all.push(this.entry(run, number, true));
    }

    entry(run, number, on) {
      return { run, number, on, store: new L.Store(run), digits: run.bits < 12 ? 3 : 4 };
    }

    add(run) {
      if (this.get(run.id)) return this.replace(run.id, run);
      this.enter(run);
      this.rebuild();
    }

    replace(id, run) {
      const index = this.all.findIndex((entry) => entry.run.id === id);
      if (index < 0) return this.add(run);
      this.all[index] = this.entry(run, this.all[index].number, this.all[index].on);
      this.rebuild();
    }

    remove(id) {
      if (!this.get(id)) return;
      this.all = this.all.filter(({ run }) => run.id !== id);
      this.rebuild();
    }

    append(id, readings) {
      const entry = this.get(id);
      if (!entry || !readings.length) return;
      entry.store.append(readings);
      this.later();
    }

    state(id, state, outcome = null) {
      const entry = this.get(id);
      if (!entry) return;
      Object.assign(entry.run, { state, outcome });
      this.parts.head();
      this.parts.origin();
      this.later();
    }

    judge(id, diagnosis, rules = {}) {
      const entry = this.get(id);
      if (!entry) return;
      Object.assign(entry.run, { diagnosis, rules });
      this.parts.verdicts();
      this.parts.strips();
    }

    explain(cards) {
      this.all.forEach(({ run }) => (run.cards = { ...run.cards, ...cards }));
    }

    close() {
      clearTimeout(this.slow.timer);
      this.charts.forEach((chart) => chart.close());
      this.forget.forEach((stop) => stop());
      this.element.replaceChildren();
    }

    // -- steps and places --------------------------------------------------------------------------------------------

    /** The step that the depth profile is shown at. */
    go(step) {
      if (!this.steps.length) return;
      const index = Math.max(0, Math.min(this.steps.length - 1, L.depth.nearest(this.steps, step)));
      this.follow = index === this.steps.length - 1;
      if (this.steps[index] === this.step) return;
      this.step = this.steps[index];
      this.parts.slider();
      this.charts.forEach((chart) => chart.depth && chart.change(true));
      this.mark();
      this.table.change();
    }

    scaled(run, at) {
      return this.relative ? (100 * (at - 0.5)) / L.depth.count(run) : at;
    }

    unscaled(run, x) {
      return this.relative ? (x * L.depth.count(run)) / 100 + 0.5 : x;
    }

    /** All panels along depth have the same horizontal axis. */
    depthAxis() {
      const ends = this.entries().flatMap(({ run }) => Object.values(run.axes).flatMap(({ at }) => (at.length ? [at[0], at[at.length - 1]].map((one) => this.scaled(run, one)) : [])));
      const [low, high] = ends.length ? [Math.min(...ends), Math.max(...ends)] : [0, 1];
      const room = 0.012 * (high - low || 1);
      return { title: { text: this.relative ? "depth, %" : "block", standoff: 6 }, range: [low - room, high + room], nticks: 8 };
    }

    /** The place that is pointed at, in every chart along depth; null goes back to the one that was picked. */
    point(x) {
      this.pointed = x;
      cancelAnimationFrame(this.frame);
      this.frame = requestAnimationFrame(() => this.mark());
    }

    pick(x) {
      this.pinned = x;
      this.mark();
    }

    mark() {
      const x = this.pointed ?? this.pinned;
      this.charts.forEach((chart) => (chart.depth || chart.map) && chart.seen && chart.spec && chart.spec.point && chart.mark(x));
      (this.strips || []).forEach((strip) => strip.update(x));
    }

    reveal(name) {
      const found = this.element.querySelector(`[data-part="${name}"]`);
      if (found) found.scrollIntoView({ behavior: window.matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth", block: "start" });
    }

    /** The question mark of a probe, or of the one that a function names. */
    about(probe) {
      const name = () => (typeof probe === "function" ? probe() : probe);
      const card = () => this.all.map(({ run }) => (run.cards || {})[name()]).find(Boolean);
      return typeof probe === "string" && !card() ? null : L.why(typeof probe === "string" ? L.probe(probe) : "this reading", () => card() && L.explain(card()));
    }

    // -- drawing -----------------------------------------------------------------------------------------------------

    later() {
      const rest = this.slow.last + 1000 / REFRESH - performance.now();
      this.slow.timer = this.slow.timer || setTimeout(() => this.refresh(), Math.max(0, rest));
    }

    /** Draws what has come, and builds anew if there is a reading that the page has no place for. */
    refresh() {
      Object.assign(this.slow, { timer: null, last: performance.now() });
      if (this.signature() !== this.signed) return this.rebuild();
      this.count();
      this.parts.slider();
      this.facts.forEach((facts) => facts.update());
      this.charts.forEach((chart) => chart.change(true));
      this.mark();
      this.table.change();
    }

    signature() {
      return this.all.map(({ store }) => [...store.courses].map(([key, course]) => `${key} ${Math.min(2, course.steps.length)}`).join(";")).join("|");
    }

    count() {
      this.steps = [...new Set(this.shown().flatMap(({ store }) => store.steps()))].sort((one, other) => one - other);
      const last = this.steps[this.steps.length - 1] ?? 0;
      this.step = this.follow ? last : (this.steps[L.depth.nearest(this.steps, this.step)] ?? last);
    }

    toggle(entry) {
      entry.on = !entry.on;
      this.rebuild("profile");
    }

    rebuild() {
      const { scrollX, scrollY } = window, focus = this.element.contains(document.activeElement) ? document.activeElement.getAttribute("data-key") : null;
      this.element.style.minHeight = `${this.element.offsetHeight}px`;
      this.charts.forEach((chart) => chart.close());
      if (this.table) this.table.watch.disconnect();
      this.signed = this.signature();
      this.count();
      L.sections(this);
      this.element.style.minHeight = "";
      window.scrollTo(scrollX, scrollY);
      const again = focus && this.element.querySelector(`[data-key="${CSS.escape(focus)}"]`);
      if (again) again.focus();
      this.charts.forEach((chart) => chart.change());
    }
  }

  L.show = (element, runs) => new View(element, runs);
})(window.Leadline);
