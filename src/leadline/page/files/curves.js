/* Numbers over the steps: learning curves and the generalisation gap, any other scalar, remedies before and after. */
"use strict";
(function (L) {
  const MOST = 1200; // points a curve; of more the least and largest of every stretch are kept

  /** A chart of curves: `items()` gives {entry, course, label, ...}, of which the first reading of a row is drawn. */
  function curves(view, { title, about, items, log = false, share = false, wide = false, controls = [], lines = () => [], also = () => [], empty }) {
    const made = new L.Chart({
      title, about, wide, controls,
      store: () => view.shown().map((entry) => entry.store),
      needs: () => [...items().map((item) => item.course), ...also()],
      build: () => build(view, { items: items(), log, share, lines: lines(), empty }),
    });
    made.grows = true;
    return made;
  }

  function build(view, { items, log, share, lines, empty }) {
    const told = items.filter(({ course }) => course && course.steps.length).map((item) => ({ ...item, ...points(item, share) }));
    if (!told.length) return { empty: empty || "Not read in the runs that are shown." };
    const finite = told.flatMap((one) => one.y.filter(Number.isFinite)).concat(lines.map((line) => line.y));
    const sized = log && finite.every((value) => value >= 0);
    const levels = sized ? finite.filter((value) => value > 0) : finite;
    const span = levels.length ? [least(levels), most(levels)] : [0, 1];
    const logarithmic = sized && span[0] > 0 && span[1] > 10 * span[0];
    const range = logarithmic ? span.map(Math.log10) : [span[0] >= 0 && span[0] < span[1] / 2 ? 0 : span[0], span[1]];
    const room = 0.06 * (range[1] - range[0] || Math.abs(range[0]) || 1);
    const infinite = told.some((one) => one.y.some((value) => !Number.isFinite(value)));
    range[0] -= logarithmic || range[0] !== 0 ? room : 0;
    range[1] += infinite ? 3 * room : room;
    const top = logarithmic ? 10 ** (range[1] - room) : range[1] - room;
    const layout = L.layout(250);
    Object.assign(layout.yaxis, { type: logarithmic ? "log" : "linear", range, exponentformat: "power", nticks: 6, ...(logarithmic ? L.powers(...range) : {}), ticksuffix: share ? " %" : "" });
    Object.assign(layout.xaxis, { title: { text: "step", standoff: 6 }, range: across(told), nticks: 7 });
    layout.shapes = lines.map(({ y }) => ({ type: "line", x0: 0, x1: 1, xref: "paper", y0: y, y1: y, line: { color: L.token("mark"), width: 1, dash: "dash" } }));
    layout.annotations = lines.map(({ y, text }) => ({ text, x: 1, xref: "paper", xanchor: "right", y: logarithmic ? Math.log10(y) : y, yanchor: "bottom", showarrow: false, font: { size: 11 } }));
    const stops = told.reduce((longest, one) => (one.x.length > longest.length ? one.x : longest), []);
    return { data: told.flatMap((one) => traces(one, top)), layout, stops, label: told.map((one) => one.label).join(", "), caption: legend(view, told), read: ({ x }) => read(view, told, x, share) };
  }

  const least = (numbers) => numbers.reduce((one, other) => Math.min(one, other), Infinity);
  const most = (numbers) => numbers.reduce((one, other) => Math.max(one, other), -Infinity);

  function across(told) {
    const [low, high] = [least(told.map((one) => one.x[0])), most(told.map((one) => one.x[one.x.length - 1]))];
    const room = 0.02 * (high - low || 1);
    return [low - room, high + room];
  }

  /** A course as points, thinned where there are many. */
  function points({ course }, share) {
    const factor = share ? share.factor : 1, offset = share ? share.offset : 0;
    const value = (k) => offset + factor * course.rows[k][0];
    const count = course.steps.length, keep = [];
    const stretch = Math.ceil(count / (MOST / 2));
    for (let start = 0; start < count; start += stretch) {
      let [low, high] = [start, start];
      for (let k = start; k < Math.min(count, start + stretch); k++) {
        if (value(k) < value(low)) low = k;
        if (!(value(k) <= value(high))) high = k;
      }
      keep.push(...(low === high ? [low] : [Math.min(low, high), Math.max(low, high)]));
    }
    return { x: keep.map((k) => course.steps[k]), y: keep.map(value) };
  }

  function traces(one, top) {
    const colour = one.colour || L.colour(one.entry.number), few = one.x.length <= 40;
    const marker = { size: 4.5, color: colour, symbol: one.dash ? "diamond-open" : "circle" };
    const line = { color: colour, width: one.width || 1.7, dash: one.dash || "solid" };
    const known = one.y.map((value) => (Number.isFinite(value) ? value : null));
    const lost = one.x.filter((_, k) => known[k] === null);
    const drawn = [{ type: "scatter", mode: few ? "lines+markers" : "lines", x: one.x, y: known, line, marker, hoverinfo: "skip" }];
    if (lost.length) drawn.push({ type: "scatter", mode: "markers", x: lost, y: lost.map(() => top), marker: { symbol: "triangle-up", size: 7, color: colour }, hoverinfo: "skip" });
    return drawn;
  }

  /** Which line is which, where the lines of a run differ by their dashes alone. */
  function legend(view, told) {
    const kinds = new Map(told.filter((one) => one.label && !one.colour).map((one) => [one.label, one.dash]));
    const words = kinds.size > 1 ? [...kinds].map(([label, dash]) => `${dash ? (dash.startsWith("2px") ? "dotted" : "dashed") : "solid"}: ${label}`).join(", ") : [...kinds.keys()].join("");
    return told.some((one) => one.y.some((value) => value === Infinity)) ? `${words}; ▲ infinite` : words;
  }

  function read(view, told, x, share) {
    const rows = told.map((one) => {
      const place = L.depth.nearest(one.x, x), value = one.y[place];
      const name = [view.alone() && !one.always ? "" : one.entry && one.entry.run.name, one.label].filter(Boolean).join(": ");
      return { x: one.x[place], colour: one.colour || L.colour(one.entry.number), name, value: Number.isNaN(value) ? "not a number" : `${L.number(value)}${share ? " %" : ""}`, note: "" };
    });
    const step = rows.reduce((best, row) => (Math.abs(row.x - x) < Math.abs(best - x) ? row.x : best), rows[0].x);
    rows.forEach((row) => (row.note = row.x === step ? "" : `at step ${L.whole(row.x)}`));
    return { x: step, head: `Step ${L.whole(step)}`, rows };
  }

  /** One item a run and reading, dashed from the second reading on. */
  const items = (view, readings) => () =>
    view.shown().flatMap((entry) => readings.map(([probe, name, label, dash]) => ({ entry, label, dash, course: entry.store.find(probe, name, true) }))).filter((item) => item.course);

  function learning(view) {
    const chance = () => view.shown().map(({ store }) => store.find("start", "chance", true)).filter(Boolean).slice(0, 1);
    const guessing = () => chance().map((course) => ({ y: course.last(), text: "guessing" }));
    const made = [
      curves(view, { title: "Loss", about: view.about("loss"), log: true, items: items(view, [["loss", "train/loss", "training"], ["evaluate", "test/loss", "test", "5px,3px"]]), lines: guessing, also: chance, empty: "No step was made." }),
    ];
    const has = (probe, name) => view.entries().some(({ store }) => store.find(probe, name, true));
    if (has("evaluate", "test/accuracy")) {
      const error = { factor: -100, offset: 100 };
      made.push(curves(view, { title: "Test error", about: view.about("evaluate"), share: error, items: items(view, [["evaluate", "test/accuracy", ""]]) }));
    }
    if (has("generalisation_gap", "gap")) {
      const points = { factor: 1, offset: 0 }, about = () => view.about("generalisation_gap");
      made.push(curves(view, { title: "Error on both splits", about: about(), share: points, items: items(view, [["generalisation_gap", "error/test", "test"], ["generalisation_gap", "error/train", "training", "5px,3px"]]) }));
      made.push(curves(view, { title: "Generalisation gap", about: about(), share: points, items: items(view, [["generalisation_gap", "gap", "in evaluation mode"], ["generalisation_gap", "gap/training", "in training mode", "5px,3px"]]) }));
    }
    return made;
  }

  const TOLD = new Set(["loss/train/loss", "evaluate/test/loss", "evaluate/test/accuracy", "generalisation_gap/gap", "generalisation_gap/error/train", "generalisation_gap/error/test"]);

  /** Any scalar that has no chart of its own. */
  function others(view) {
    const found = new Set(view.entries().flatMap(({ store }) => store.list().filter((course) => !course.places && course.steps.length > 1).map((course) => `${course.probe}/${course.name}`)));
    const names = [...found].filter((name) => !TOLD.has(name) && !name.startsWith("hessian_spectrum/"));
    if (!names.length) return [];
    const now = () => (names.includes(view.chosen.get("scalar")) ? view.chosen.get("scalar") : names[0]);
    const pick = L.el("select", { "aria-label": "Which number over the steps", onchange: () => (view.chosen.set("scalar", pick.value), made.change()) });
    pick.append(...names.map((name) => L.el("option", { value: name, selected: name === now() }, words(name))));
    const of = () => { const [probe, ...rest] = now().split("/"); return items(view, [[probe, rest.join("/"), ""]])(); };
    const made = curves(view, { title: "Other numbers", about: view.about(() => now().split("/")[0]), controls: [pick], items: of, log: true });
    return [made];
  }

  const words = (name) => { const [probe, ...rest] = name.split("/"); return `${L.probe(probe)}: ${rest.join("/")}`; };

  /** What brief training came to with each remedy, as curves and as a table. */
  function proofs(view, entry) {
    const proof = entry.run.proofs;
    if (!proof || !proof.before) return null;
    const trials = (proof.trials || []).map((trial, k) => ({ ...trial, number: k + 1 }));
    const chance = L.real(proof.before.chance);
    const list = [{ remedy: "as it is", course: proof.before, number: null }, ...trials].filter((one) => one.course && one.course.losses.length);
    const item = ({ remedy, course, number }) => ({
      label: remedy, always: true, course: { steps: course.losses.map((_, k) => k), rows: course.losses.map((loss) => [L.real(loss)]), ready: true, notes: [] },
      get colour() { return number === null ? L.token("ink") : L.colour(number); }, width: number === null ? 2.4 : 1.7, dash: number === null ? "" : L.dash(number),
    });
    const chart = curves(view, { title: "Training before and after", log: true, items: () => list.map(item), lines: () => (chance ? [{ y: chance, text: "guessing" }] : []) });
    chart.name = `Loss before and after each remedy, ${entry.run.name}`;
    const swatch = (number) => L.el("span", { class: "swatch", style: { background: number === null ? "var(--ink)" : L.colour(number) } });
    const row = ({ remedy, course, outcome, said, number }) => {
      const losses = course ? course.losses.map(L.real) : [], last = losses.slice(-10).reduce((sum, loss) => sum + loss, 0) / Math.min(10, losses.length);
      return L.el("tr", { class: remedy === proof.best ? "best" : "" }, L.el("th", { scope: "row" }, swatch(number), remedy), L.el("td", { class: "number" }, losses.length ? `${L.number(losses[0], 3)} → ${L.number(last, 3)}` : "–"), L.el("td", {}, outcome ? L.el("span", { class: `chip outcome-${outcome.replaceAll(" ", "-")}` }, outcome) : "", said ? L.el("div", { class: "quiet small" }, said) : ""));
    };
    const head = L.el("tr", {}, ["", "loss", "what came of it"].map((text) => L.el("th", { scope: "col" }, text)));
    const table = L.el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Remedies tried" }, L.el("table", { class: "plain" }, L.el("thead", {}, head), L.el("tbody", {}, [{ remedy: "as it is", course: proof.before, number: null }, ...trials].map(row))));
    const words = `${L.plural(proof.steps, "step")} each from seed ${proof.seed} on the same batches. ${proof.best ? `Best: ${proof.best}.` : "None of them helped."}`;
    return { charts: [chart], element: L.el("div", { class: "pair" }, chart.element, L.el("div", {}, L.el("p", {}, words), table)) };
  }

  Object.assign(L, { curves, items, learning, others, proofs });
})(window.Leadline);
