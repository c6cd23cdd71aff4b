/* The network as a row of blocks: where transitions are, where findings point to, and what is known of one block. */
"use strict";
(function (L) {
  const MAIN = [
    ["gradient_norm_ratio", "ratio"], ["norm_bound", "deviation"], ["norm_bound", "delta"], ["hidden_condition", "kappa/batch"],
    ["hidden_condition", "rank/batch"], ["weight_condition", "kappa"], ["operator_condition", "kappa"], ["activation_range", "p50"], ["activation_range", "max"],
    ["update_ratio", "ratio"], ["collinearity", "cosine"], ["feature_predictability", "predictable"],
  ];

  /** The row of one run's blocks; a slider for those who use keys, and the text about the block it is at. */
  function strip(view, entry) {
    const { run } = entry, count = L.depth.count(run), blocks = L.depth.blocks(run);
    if (!blocks.length) return null;
    const drawing = L.el("svg", { viewBox: `0 0 ${count} 10`, preserveAspectRatio: "none", class: "blocks", "aria-hidden": "true" });
    const gap = count > 120 ? 0 : 0.12;
    blocks.forEach((block, k) => drawing.append(L.el("rect", { x: k + gap / 2, y: 0, width: 1 - gap, height: 10, class: `block ${block.transition ? "transition" : block.kind}` })));
    const marks = pointed(run).map(({ at, id, severity }) =>
      L.el("span", { class: `pin ${severity}`, title: `${id}: ${nameAt(run, at)}`, style: { left: `${share(run, at)}%` } }));
    const cursor = L.el("span", { class: "needle", hidden: true });
    const handle = L.el("div", {
      class: "strip", tabindex: "0", role: "slider", "aria-label": `Block of ${run.name}`, "aria-valuemin": "1", "aria-valuemax": String(count), "aria-valuenow": "1", "aria-valuetext": "none chosen",
    }, drawing, marks, cursor);
    const about = L.el("div", { class: "inspector", "aria-live": "polite" });
    const made = { element: L.el("div", { class: "strip-box" }, view.alone() ? null : label(entry), handle, about), entry, update };

    const at = (event) => {
      const box = handle.getBoundingClientRect();
      return Math.min(count, Math.max(1, Math.round(0.5 + ((event.clientX - box.left) / box.width) * count)));
    };
    handle.addEventListener("pointermove", (event) => event.pointerType === "mouse" && view.point(view.scaled(run, at(event))));
    handle.addEventListener("pointerleave", () => view.point(null));
    handle.addEventListener("click", (event) => view.pick(view.scaled(run, at(event))));
    handle.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10, Home: -count, End: count }[event.key];
      if (event.key === "Escape") return view.pick(null);
      if (!step) return;
      event.preventDefault();
      const now = view.pinned === null ? (step > 0 ? 0 : 2) : Math.round(view.unscaled(run, view.pinned));
      view.pick(view.scaled(run, Math.min(count, Math.max(1, now + step))));
    });

    function update(position) {
      const number = position === null ? -1 : L.depth.blockAt(run, Math.min(count, Math.max(1, view.unscaled(run, position))));
      cursor.hidden = number < 0;
      if (number >= 0) cursor.style.left = `${share(run, number + 1)}%`;
      handle.setAttribute("aria-valuenow", String(Math.max(1, number + 1)));
      handle.setAttribute("aria-valuetext", number < 0 ? "none chosen" : blocks[number].name);
      L.fill(about, number < 0 ? hint(run) : told(view, entry, number));
    }
    update(null);
    return made;
  }

  const share = (run, at) => (100 * (Math.min(L.depth.count(run) + 0.5, Math.max(0.5, at)) - 0.5)) / L.depth.count(run);
  const label = (entry) => L.el("div", { class: "strip-name" }, L.el("span", { class: "swatch", style: { background: L.paint(entry.number) } }), entry.run.name);

  function nameAt(run, at) {
    const number = L.depth.blockAt(run, at);
    return number < 0 ? `depth ${L.number(at)}` : L.depth.blocks(run)[number].name;
  }

  /** Where the findings of a run point to. */
  function pointed(run) {
    const findings = ((run.diagnosis || {}).findings || []).flatMap((one) => [one, ...(one.consequences || [])]);
    return findings.flatMap(({ id, severity, places }) => Object.values(places || {}).map((at) => ({ at, id, severity })));
  }

  function hint(run) {
    const blocks = L.depth.blocks(run), changes = blocks.filter((block) => block.transition).length;
    const skips = blocks.filter((block) => block.length > 0).length;
    const said = [L.plural(blocks.length, "block"), changes ? L.plural(changes, "transition") : "no transition", skips ? `${L.whole(skips)} with a skip` : "no skips"];
    return [L.el("span", { class: "quiet" }, `${said.join(", ")}. `, L.el("span", { class: "hint" }, "Point at a block, or press it to keep it."))];
  }

  /** Name, kind and shapes of a block, and its numbers at this step. */
  function told(view, entry, number) {
    const block = L.depth.blocks(entry.run)[number];
    const head = L.el("div", {}, L.el("strong", {}, `Block ${number + 1}`), " ", L.el("code", {}, block.name), L.el("span", { class: "quiet" }, ` ${[L.kind(block), `${L.shape(block.in)} → ${L.shape(block.out)}`, block.parameters ? `${L.whole(block.parameters)} parameters` : "", block.calls > 1 ? `called ${block.calls} times` : ""].filter(Boolean).join(" · ")}`));
    const numbers = MAIN.flatMap(([probe, name]) => {
      const course = entry.store.find(probe, name), index = course && course.ready ? course.at(view.step) : -1;
      if (index < 0) return [];
      const where = L.depth.along(entry.run, course), wanted = number + 1 + (where.axis === "boundary" ? 0.5 : 0);
      const place = L.depth.nearest(where.at, wanted);
      if (Math.abs(where.at[place] - wanted) > 0.5) return [];
      return [L.el("span", { class: "fact" }, L.el("span", { class: "quiet" }, `${SHORT[`${probe}/${name}`] || L.probe(probe)} `), L.el("b", { class: "number" }, L.number(course.rows[index][place], entry.digits)))];
    });
    return [head, numbers.length ? L.el("div", { class: "facts-row" }, numbers) : null];
  }

  const SHORT = {
    "gradient_norm_ratio/ratio": "gradient ratio", "norm_bound/deviation": "deviation", "norm_bound/delta": "allowed δ", "hidden_condition/kappa/batch": "κ of output", "hidden_condition/rank/batch": "rank of output",
    "weight_condition/kappa": "κ of weights", "operator_condition/kappa": "κ of operator", "activation_range/p50": "median activation", "activation_range/max": "largest activation", "update_ratio/ratio": "update", "collinearity/cosine": "cosine", "feature_predictability/predictable": "predictable",
  };

  L.strip = strip;
})(window.Leadline);
