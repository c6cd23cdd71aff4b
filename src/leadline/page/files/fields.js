/* Numbers over two axes: block x step as a heatmap, and the density of the Hessian's eigenvalues. */
"use strict";
(function (L) {
  const MOST_ROWS = 300;
  const BINS = 16;

  const metric = (course) => `${course.probe}/${course.name}`;

  /** One map a run, all on the same scale; which reading is chosen for all of them. */
  function maps(view) {
    const found = new Map();
    for (const { store } of view.entries())
      for (const course of store.list())
        if (course.places > 1 && course.steps.length > 1 && !course.name.startsWith("histogram/")) found.set(metric(course), course);
    if (!found.size) return null;
    const names = [...found.keys()], charts = [];
    const first = names.includes("gradient_norm_ratio/ratio") ? "gradient_norm_ratio/ratio" : names[0];
    const now = () => (names.includes(view.chosen.get("map")) ? view.chosen.get("map") : first);
    const pick = L.el("select", { "aria-label": "Which reading the map shows", onchange: () => (view.chosen.set("map", pick.value), charts.forEach((chart) => chart.change())) });
    pick.append(...names.map((name) => L.el("option", { value: name, selected: name === now() }, words(found.get(name)))));
    for (const entry of view.shown()) charts.push(map(view, entry, now, view.alone()));
    const about = L.el("span", {}, view.about(() => now().split("/")[0]));
    return { charts, element: L.el("div", {}, L.el("p", { class: "bar" }, L.el("label", {}, "Reading ", pick), about), L.el("div", { class: "grid" }, charts.map((chart) => chart.element))) };
  }

  const words = (course) => `${L.probe(course.probe)}: ${L.reading(course.probe, course.name)}`;
  const split = (name) => [name.slice(0, name.indexOf("/")), name.slice(name.indexOf("/") + 1)];

  function map(view, entry, now, wide) {
    const all = () => view.shown().map(({ store }) => store.find(...split(now()))).filter(Boolean);
    const made = new L.Chart({
      title: wide ? "Block × step" : entry.run.name, name: `Block by step, ${entry.run.name}`, wide, height: 300,
      store: () => view.shown().map((one) => one.store),
      needs: all,
      build: () => field(view, entry, entry.store.find(...split(now())), all()),
    });
    made.map = made.grows = true;
    return made;
  }

  function field(view, entry, course, all) {
    if (!course || course.steps.length < 2) return { empty: "Not read at several steps in this run." };
    const where = L.depth.along(entry.run, course), x = where.at.map((at) => view.scaled(entry.run, at));
    const stride = Math.ceil(course.steps.length / MOST_ROWS);
    const rows = course.steps.map((_, k) => k).filter((k) => k % stride === 0 || k === course.steps.length - 1);
    const scale = levels(all), colours = L.scales(), y = rows.map((k) => course.steps[k]);
    const z = rows.map((k) => Array.from(course.rows[k], scale.put));
    const infinite = rows.map((k) => Array.from(course.rows[k], (value) => (Math.abs(value) === Infinity ? 1 : null)));
    const bar = { thickness: 10, outlinewidth: 0, len: 1, tickvals: scale.ticks, ticktext: scale.ticks.map((tick) => L.number(scale.back(tick), 3)), tickfont: { size: 11 } };
    const data = [{ type: "heatmap", x, y, z, zmin: scale.low, zmax: scale.high, colorscale: scale.middle ? colours.middle : colours.rising, colorbar: bar, hoverinfo: "skip", zsmooth: false }];
    const any = infinite.some((row) => row.includes(1));
    if (any) data.push({ type: "heatmap", x, y, z: infinite, zmin: 0, zmax: 1, showscale: false, colorscale: [[0, colours.infinite], [1, colours.infinite]], hoverinfo: "skip" });
    const layout = L.layout(300);
    Object.assign(layout.xaxis, view.depthAxis());
    Object.assign(layout.yaxis, { title: { text: "step", standoff: 4 }, showgrid: false, ...(y.length < 8 ? { tickvals: y } : {}) });
    const said = { x, where, course };
    return {
      data, layout, stops: x, level: view.step,
      label: `${words(course)}, ${L.plural(course.steps.length, "step")}.`,
      caption: [stride > 1 ? `every ${L.whole(stride)}th reading` : "", any ? "pink: infinite" : "", z.some((row) => row.includes(null)) ? "blank: not measured" : ""].filter(Boolean).join("; "),
      read: (at) => read(entry, said, at),
      point: (told) => view.point(told && told.x),
      pick: (at) => at && (view.pick(at.x), at.y !== undefined && view.go(at.y)),
    };
  }

  function read(entry, { x, where, course }, at) {
    const place = L.depth.nearest(x, at.x), index = at.y === undefined ? course.steps.length - 1 : L.depth.nearest(course.steps, at.y);
    const text = L.depth.words(entry.run, where, place), value = course.rows[index][place];
    const row = { name: `step ${L.whole(course.steps[index])}`, value: Number.isNaN(value) ? "not measured" : L.number(value, entry.digits), note: Number.isNaN(value) ? course.note(index, place) : "" };
    return { x: x[place], stop: place, head: text.head, lines: text.lines, rows: [row] };
  }

  /** The scale of colours: by the logarithm where numbers are positive over decades, around 1 for ratios. */
  function levels(all) {
    const known = [];
    let positive = true;
    for (const course of all) {
      const stride = Math.max(1, Math.floor((course.rows.length * course.places) / 20000));
      for (let k = 0; k < course.rows.length * course.places; k += stride) {
        const value = course.rows[Math.floor(k / course.places)][k % course.places];
        if (Number.isFinite(value)) known.push(value), (positive = positive && value >= 0);
      }
    }
    known.sort((one, other) => one - other);
    const quantile = (share) => known[Math.round(share * (known.length - 1))] ?? 0;
    const least = known.find((value) => value > 0) ?? 1;
    const middle = all.every((course) => course.name === "ratio" && course.probe !== "update_ratio");
    const log = positive && (middle || quantile(0.995) > 20 * Math.max(quantile(0.005), least));
    const put = (value) => (Number.isFinite(value) ? (log ? Math.log10(Math.max(value, least)) : value) : null);
    let [low, high] = [put(quantile(0.005)) ?? 0, put(quantile(0.995)) ?? 1];
    if (middle) [low, high] = [-1, 1].map((sign) => sign * Math.max(Math.abs(low), Math.abs(high), 0.1));
    if (!(low < high)) high = low + 1;
    const ticks = Array.from({ length: 5 }, (_, k) => low + (k / 4) * (high - low));
    return { put, low, high, ticks, middle, back: (tick) => (log ? 10 ** tick : tick) };
  }

  // -- the Hessian ---------------------------------------------------------------------------------------------------

  const HESSIAN = "hessian_spectrum";
  const bin = (k) => `histogram/${String(k).padStart(2, "0")}`;

  /** Density at the step of the slider; index, ends and ratio over the steps. */
  function spectrum(view) {
    if (!view.entries().some(({ store }) => store.list(HESSIAN).length)) return [];
    const about = () => view.about(HESSIAN);
    const parts = (entry) => ["bottom", "top", "index", ...Array.from({ length: BINS }, (_, k) => bin(k))].map((name) => entry.store.find(HESSIAN, name, true));
    const density = new L.Chart({
      title: "Density of the eigenvalues", about: about(),
      store: () => view.shown().map((entry) => entry.store),
      needs: () => view.shown().flatMap(parts),
      build: () => shares(view),
    });
    density.depth = true;
    const index = L.curves(view, { title: "Index: share of negative eigenvalues", about: about(), items: L.items(view, [[HESSIAN, "index", "index"], [HESSIAN, "index/low", "at least", "2px,3px"], [HESSIAN, "index/high", "at most", "6px,3px"]]) });
    const ends = L.curves(view, { title: "Ends of the spectrum", about: about(), items: L.items(view, [[HESSIAN, "top", "largest"], [HESSIAN, "bottom", "smallest", "5px,3px"]]) });
    const ratio = L.curves(view, { title: "Condition: |λ| max over 10th percentile", about: about(), log: true, items: L.items(view, [[HESSIAN, "ratio10", ""]]) });
    return [density, index, ends, ratio];
  }

  function shares(view) {
    const found = view.shown().map((entry) => ({ entry, ...at(entry, view.step) })).filter((one) => one.shares);
    if (!found.length) return { empty: missing(view) };
    const layout = L.layout(250);
    const least = Math.min(...found.flatMap((one) => one.shares.filter((share) => share > 0)), 0.1);
    Object.assign(layout.yaxis, { type: "log", range: [Math.log10(least) - 0.3, 0.1], ...L.powers(Math.log10(least) - 0.3, 0.1), title: { text: "share", standoff: 4 } });
    Object.assign(layout.xaxis, { title: { text: "eigenvalue", standoff: 6 }, zeroline: true, zerolinecolor: L.token("mark") });
    const data = found.map(({ entry, edges, shares: each }) => {
      const colour = L.colour(entry.number), y = each.map((share) => (share > 0 ? share : null));
      return view.shown().length > 1
        ? { type: "scatter", mode: "lines", x: edges, y: [...y, y[y.length - 1]], line: { shape: "hv", color: colour, width: 1.7, dash: L.dash(entry.number) }, hoverinfo: "skip" }
        : { type: "bar", x: middles(edges), y, width: 0.94 * (edges[1] - edges[0]), marker: { color: `${colour}cc` }, hoverinfo: "skip" };
    });
    return {
      data, layout, stops: middles(found[0].edges), label: "Share of the eigenvalues in each of 16 parts.",
      caption: found.map(({ entry, step, index, edges }) => `${view.alone() ? "" : `${entry.run.name}: `}step ${L.whole(step)}, λ from ${L.number(edges[0], 3)} to ${L.number(edges[BINS], 3)}${Number.isFinite(index) ? `, index ${L.number(index, 3)}` : ""}`).join("; "),
      read: ({ x }) => inBin(view, found, x),
    };
  }

  const middles = (edges) => edges.slice(1).map((edge, k) => (edge + edges[k]) / 2);

  function at(entry, step) {
    const of = (name) => { const course = entry.store.find(HESSIAN, name, true), k = course ? course.at(step) : -1; return k < 0 ? [NaN, -1] : [course.rows[k][0], course.steps[k]]; };
    const [[low, when], [high], [index]] = [of("bottom"), of("top"), of("index")];
    const each = Array.from({ length: BINS }, (_, k) => of(bin(k))[0]);
    if (!(low < high) || each.every(Number.isNaN)) return {};
    return { step: when, index, shares: each, edges: Array.from({ length: BINS + 1 }, (_, k) => low + ((high - low) * k) / BINS) };
  }

  function inBin(view, found, x) {
    const rows = found.map(({ entry, edges, shares: each }) => {
      const k = Math.min(BINS - 1, Math.max(0, Math.floor(((x - edges[0]) / (edges[BINS] - edges[0])) * BINS)));
      return { colour: L.colour(entry.number), name: `${view.alone() ? "" : `${entry.run.name}: `}λ ${L.number(edges[k], 3)} to ${L.number(edges[k + 1], 3)}`, value: L.percent(each[k]), note: "" };
    });
    return { x, head: "Share of the eigenvalues", rows };
  }

  function missing(view) {
    const told = view.shown().flatMap(({ store }) => store.list(HESSIAN)).flatMap((course) => course.notes)[0];
    return told ? `Not measured: ${told.text}.` : "Not read up to this step.";
  }

  Object.assign(L, { maps, spectrum });
})(window.Leadline);
