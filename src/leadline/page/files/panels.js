/* Readings along depth: which panels there are, and how one is drawn at the step of the slider. */
"use strict";
(function (L) {
  const RANGE = ["max", "p99", "p95", "p75", "p50", "p25", "p05", "p01", "min"];
  const RANGE_WORDS = { p50: "median", p99: "99 %", p95: "95 %", p75: "75 %", p25: "25 %", p05: "5 %", p01: "1 %" };
  const PANELS = [
    { probe: "gradient_norm_ratio", names: ["ratio", "norm", "product"], log: true, normal: { ratio: [0.9, 1.1] } },
    { probe: "norm_bound", title: "Norm budget of Corollary 1", names: ["deviation", "delta"], log: true, together: true },
    { probe: "hidden_condition", names: ["kappa/batch", "kappa/channel", "kappa_kept/batch", "kappa_kept/channel"], log: true },
    { probe: "hidden_condition", title: "Rank of the representations", names: ["rank/batch", "rank/channel", "dead"] },
    { probe: "weight_condition", names: ["kappa", "kappa/mode0", "kappa/mode1", "kappa/mode2", "kappa/mode3", "kappa_kept", "lost"], log: true },
    { probe: "operator_condition", names: ["kappa", "sigma_max", "sigma_min"], log: true },
    { probe: "activation_range", names: RANGE, range: true },
    { probe: "gradient_range", names: RANGE, range: true },
    { probe: "weight_range", names: RANGE, range: true, more: true },
    { probe: "output_range", names: RANGE, range: true, more: true },
    { probe: "update_ratio", names: ["ratio"], log: true, normal: { ratio: [1e-5, 1e-1] }, more: true },
    { probe: "weight_norm", names: ["norm"], log: true, more: true },
    { probe: "collinearity", names: ["cosine"], more: true },
    { probe: "feature_predictability", names: ["predictable"], more: true },
    { probe: "residual_probe", names: ["accuracy", "risk"], more: true },
    { probe: "risk_lower_bound", names: ["risk/prefix", "gain"], more: true },
  ];

  /** The panels for what was read: ours first, then one for every other probe that has numbers along depth. */
  function panels(view) {
    const read = new Map();
    for (const { store } of view.entries()) {
      for (const course of store.list()) {
        if (!read.has(course.probe)) read.set(course.probe, new Set());
        if (course.places && !course.name.startsWith("histogram/")) read.get(course.probe).add(course.name);
      }
    }
    const ours = PANELS.filter((panel) => read.has(panel.probe)).map((panel) => ({ ...panel, title: panel.title || L.probe(panel.probe) }));
    const known = new Set(PANELS.map((panel) => panel.probe));
    const others = [...read].filter(([probe, names]) => !known.has(probe) && names.size);
    return [...ours, ...others.map(([probe, names]) => ({ probe, names: [...names], title: L.probe(probe), log: true, more: true }))];
  }

  /** The readings a panel is drawn from in one run. */
  function series(view, panel, entry) {
    const chosen = panel.range || panel.together ? panel.names : [chosenOf(view, panel)];
    return chosen.map((name) => ({ name, course: entry.store.find(panel.probe, name) })).filter((one) => one.course);
  }

  const chosenOf = (view, panel) => view.chosen.get(panel.title) || present(view, panel)[0] || panel.names[0];
  const present = (view, panel) => panel.names.filter((name) => view.entries().some(({ store }) => store.find(panel.probe, name)));

  /** The figure of a panel. */
  function chart(view, panel) {
    const names = panel.range || panel.together ? [] : present(view, panel);
    const pick = L.el("select", { "aria-label": `Which reading: ${panel.title}`, onchange: () => (view.chosen.set(panel.title, pick.value), made.change()) });
    pick.append(...names.map((name) => L.el("option", { value: name, selected: name === chosenOf(view, panel) }, L.reading(panel.probe, name))));
    const made = new L.Chart({
      title: panel.title,
      about: view.about(panel.probe),
      controls: names.length > 1 ? [pick] : [],
      store: () => view.shown().map((entry) => entry.store),
      needs: () => view.shown().flatMap((entry) => series(view, panel, entry).map((one) => one.course)),
      build: () => build(view, panel),
    });
    made.depth = true;
    return made;
  }

  function build(view, panel) {
    const runs = view.shown().map((entry) => taken(view, panel, entry)).filter((run) => run.series.length);
    if (!runs.length) return { empty: reason(view, panel) };
    const scale = (panel.range ? swollen : plain)(view, panel, runs);
    const data = runs.flatMap((run) => (panel.range ? bands(view, run, scale, runs.length) : lines(view, run, scale)));
    const layout = L.layout(250);
    Object.assign(layout.yaxis, scale.axis);
    Object.assign(layout.xaxis, view.depthAxis());
    layout.shapes = [...transitions(view), ...normal(view, panel, scale)];
    layout.annotations = scale.infinite ? [edge("∞", scale.top)] : [];
    return {
      data, layout,
      stops: runs[0].x,
      label: `${runs.map((run) => run.entry.run.name).join(", ")}. Arrow keys go from ${runs[0].where.axis} to ${runs[0].where.axis}.`,
      caption: [panel.together ? panel.names.map((name, k) => `${k ? "dashed" : "solid"}: ${L.reading(panel.probe, name)}`).join(", ") : "", caption(view, runs)].filter(Boolean).join(" · "),
      read: ({ x }) => read(view, panel, runs, x),
      point: (told) => view.point(told && told.x),
      pick: (place) => place && view.pick(place.x),
    };
  }

  /** A run's series at the step of the slider, where it was read by then. */
  function taken(view, panel, entry) {
    const found = series(view, panel, entry).map((one) => ({ ...one, index: one.course.at(view.step) })).filter((one) => one.index >= 0);
    const where = found.length ? L.depth.along(entry.run, found[0].course) : null;
    return { entry, where, x: where ? where.at.map((at) => view.scaled(entry.run, at)) : [], series: found.map((one) => ({ ...one, values: one.course.rows[one.index] })) };
  }

  function reason(view, panel) {
    for (const { store } of view.shown()) {
      const told = store.list(panel.probe).find((course) => !course.places && course.notes.length);
      if (told) return `Not measured: ${told.notes[0].text}.`;
      const later = store.list(panel.probe).find((course) => course.places && course.steps.length);
      if (later) return `First read at step ${L.whole(later.steps[0])}.`;
    }
    return view.shown().length ? "Not read in the runs that are shown." : "No run is shown.";
  }

  const TOP = 0.94;

  /** The vertical axis: the same at every step, unless it is to fit the one that is shown. */
  function plain(view, panel, runs) {
    let [low, high, positive, infinite] = [Infinity, -Infinity, Infinity, false];
    for (const { series } of runs) {
      for (const one of series) {
        const found = view.fit ? L.Course.prototype.range.call({ rows: [one.values], extent: null }) : one.course.range();
        low = Math.min(low, found.low);
        high = Math.max(high, found.high);
        positive = Math.min(positive, found.positive);
        infinite = infinite || found.infinite;
      }
    }
    if (!(low <= high)) [low, high, positive] = [0, 1, 1];
    const log = Boolean(panel.log) && positive < Infinity && high > 20 * positive;
    let [from, to] = log ? [Math.log10(positive), Math.log10(high)] : [low >= 0 && low < high / 2 ? 0 : low, high];
    const room = (to - from || (log ? 1 : Math.abs(to) || 1)) * 0.06;
    from -= log || from < 0 || from === to ? room : 0;
    to += room;
    if (infinite || (log && low <= 0)) to += (to - from) * 0.1;
    const at = (share) => from + share * (to - from);
    const axis = { type: log ? "log" : "linear", range: [from, to], exponentformat: "power", nticks: 6, ...(log ? L.powers(from, to) : {}) };
    const put = (share) => (log ? 10 ** at(share) : at(share));
    return { axis, infinite, top: at(TOP), high: put(TOP), bottom: put(0.03), draw: (value) => (Number.isFinite(value) && (!log || value > 0) ? value : null), log };
  }

  /** For values of both signs over many sizes: sign(v) log10(1 + |v| / c), linear within c. */
  function swollen(view, panel, runs) {
    const sizes = runs.flatMap(({ series }) => series.filter((one) => one.name === "min" || one.name === "max"));
    let [low, high] = [0, 0];
    for (const one of sizes) {
      const found = view.fit ? L.Course.prototype.range.call({ rows: [one.values], extent: null }) : one.course.range();
      [low, high] = [Math.min(low, found.low), Math.max(high, found.high)];
    }
    const largest = Math.max(-low, high) || 1;
    const typical = sizes.flatMap((one) => [...one.values].map(Math.abs)).filter((size) => size > 0 && size < Infinity).sort((a, b) => a - b);
    const least = typical.length ? typical[Math.floor(typical.length / 10)] : largest;
    const c = 10 ** Math.floor(Math.log10(Math.min(largest / 10, Math.max(largest / 1e6, least / 10))));
    const draw = (value) => (Number.isFinite(value) ? Math.sign(value) * Math.log10(1 + Math.abs(value) / c) : null);
    const ticks = [0];
    const [first, last] = [Math.log10(c) + 1, Math.floor(Math.log10(largest))];
    const stride = Math.max(1, Math.ceil((last - first + 1) / 3));
    for (let power = Math.round(last); power >= first - 1e-9; power -= stride) {
      if (high >= 10 ** power) ticks.push(10 ** power);
      if (low <= -(10 ** power)) ticks.push(-(10 ** power));
    }
    const room = (draw(high) - draw(low) || 1) * 0.06;
    const axis = { range: [draw(low) - room, draw(high) + room], tickvals: ticks.map(draw), ticktext: ticks.map((tick) => L.number(tick)) };
    return { axis, draw, infinite: false, high: draw(high), bottom: draw(low) };
  }

  /** A line a series; triangles at the edges for what is infinite or zero, crosses for what is missing. */
  function lines(view, run, scale) {
    const colour = L.colour(run.entry.number), few = run.x.length <= 64;
    return run.series.flatMap((one, k) => {
      const marks = { x: [], y: [], symbol: [] };
      const y = Array.from(one.values, (value, place) => {
        const drawn = scale.draw(value);
        if (drawn !== null) return drawn;
        marks.x.push(run.x[place]);
        marks.y.push(value === Infinity ? scale.high : scale.bottom);
        marks.symbol.push(value === Infinity ? "triangle-up" : Number.isNaN(value) ? "x-thin-open" : "triangle-down");
        return null;
      });
      const dash = k ? "4px,3px" : L.dash(view.alone() ? 0 : run.entry.number);
      const marker = { size: 4, color: colour, symbol: k ? "diamond-open" : "circle" };
      return [
        { type: "scatter", mode: few ? "lines+markers" : "lines", x: run.x, y, line: { color: colour, width: k ? 1.4 : 1.8, dash }, marker, hoverinfo: "skip" },
        { type: "scatter", mode: "markers", visible: marks.x.length > 0, x: marks.x, y: marks.y, marker: { symbol: marks.symbol, size: 7, color: colour, line: { color: colour, width: 1 } }, hoverinfo: "skip" },
      ];
    });
  }

  /** Extremes as thin lines, 1 to 99 and 25 to 75 percent shaded, the median on top. */
  function bands(view, run, scale, count) {
    const colour = L.colour(run.entry.number);
    const of = (name) => (run.series.find((one) => one.name === name) || { values: [] }).values;
    const trace = (name, more) => ({ type: "scatter", mode: "lines", x: run.x, y: Array.from(of(name), scale.draw), hoverinfo: "skip", line: { width: 0, color: colour }, ...more });
    const fill = (share) => ({ fill: "tonexty", fillcolor: `${colour}${Math.round(share * 255).toString(16).padStart(2, "0")}` });
    const thin = { line: { width: 1, color: `${colour}99` } };
    const outer = [trace("p01"), trace("p99", fill(count > 1 ? 0.14 : 0.18))];
    const inner = count > 1 ? [] : [trace("p25"), trace("p75", fill(0.3))];
    return [trace("min", thin), trace("max", thin), ...outer, ...inner, trace("p50", { line: { width: 1.8, color: colour, dash: L.dash(count > 1 ? run.entry.number : 0) } })];
  }

  const edge = (text, y) => ({ text, x: 1, xref: "paper", xanchor: "left", xshift: 2, y, yref: "y", showarrow: false, font: { size: 15, color: L.token("ink") } });

  /** Dotted lines where the shape or the skip changes. */
  function transitions(view) {
    const found = new Set(view.shown().flatMap(({ run }) => L.depth.transitions(run).map((at) => view.scaled(run, at))));
    if (found.size > 40) return [];
    const line = { color: L.token("mark"), width: 1, dash: "dot" };
    return [...found].map((x) => ({ type: "line", x0: x, x1: x, y0: 0, y1: 1, yref: "paper", layer: "below", line }));
  }

  function normal(view, panel, scale) {
    const band = panel.normal && panel.normal[chosenOf(view, panel)];
    if (!band) return [];
    const [low, high] = scale.axis.range, [y0, y1] = band.map((end) => Math.max(low, Math.min(high, scale.log ? Math.log10(end) : end)));
    const put = (y) => (scale.log ? 10 ** y : y);
    return [{ type: "rect", x0: 0, x1: 1, xref: "paper", y0: put(y0), y1: put(y1), layer: "below", line: { width: 0 }, fillcolor: L.token("normal") }];
  }

  /** When the numbers were read, where that is not the step of the slider, and how they were. */
  function caption(view, runs) {
    const told = new Map();
    for (const { entry, series } of runs) {
      const { course, index } = series[0], step = course.steps[index];
      const general = course.notes.find((note) => (!note.at || note.at.includes(index)) && (note.places.includes(-1) || note.places.length === course.places));
      const parts = [step === view.step ? "" : `read at step ${L.whole(step)}`, general ? general.text : ""].filter(Boolean);
      const text = parts.join(" · ");
      told.set(text, [...(told.get(text) || []), entry.run.name]);
    }
    return [...told].filter(([text]) => text).map(([text, names]) => (told.size === 1 ? text : `${names.join(", ")}: ${text}`)).join("; ");
  }

  /** What is said of the place nearest to x, of every run. */
  function read(view, panel, runs, x) {
    const found = runs.map((run) => ({ run, place: L.depth.nearest(run.x, x) }));
    const texts = found.map(({ run, place }) => L.depth.words(run.entry.run, run.where, place));
    const same = texts.every((text) => text.head === texts[0].head);
    const rows = found.flatMap(({ run, place }, k) =>
      run.series.map((one) => ({
        colour: L.colour(run.entry.number),
        name: [found.length > 1 && run.entry.run.name, !same && texts[k].head, named(panel, one)].filter(Boolean).join(": "),
        value: Number.isNaN(one.values[place]) ? "not measured" : L.number(one.values[place], run.entry.digits),
        note: placed(one, place),
      })),
    );
    const position = found[0].run.x[found[0].place];
    return { x: position, stop: found[0].place, head: same ? texts[0].head : "At this depth", lines: same ? texts[0].lines : [], rows };
  }

  const named = (panel, one) => (panel.range ? RANGE_WORDS[one.name] || one.name : L.reading(panel.probe, one.name));

  /** A note on this number alone. */
  function placed({ course, index }, place) {
    const note = course.notes.find((one) => (!one.at || one.at.includes(index)) && one.places.includes(place));
    return note && note.places.length < course.places ? note.text : note && Number.isNaN(course.rows[index][place]) ? note.text : "";
  }

  L.panels = { list: panels, chart, transitions };
})(window.Leadline);
