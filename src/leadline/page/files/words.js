/* Elements, numbers and words: how the page says things. Text is only ever set as text. */
"use strict";
window.Leadline = window.Leadline || {};
(function (L) {
  const SVG = "http://www.w3.org/2000/svg";
  const OWN = new Set(["svg", "rect", "path", "polyline", "line", "g", "title", "circle"]);

  /** An element: attributes, `on...` listeners, and children, of which strings become text. */
  L.el = function (tag, attributes, ...children) {
    const made = OWN.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === undefined || value === null || value === false) continue;
      if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else if (name === "style") Object.entries(value).forEach(([key, text]) => made.style.setProperty(key, text));
      else made.setAttribute(name, value === true ? "" : value);
    }
    made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
    return made;
  };

  /** Takes the children of an element away and puts others there. */
  L.fill = (element, ...children) => (element.replaceChildren(), element.append(...children.flat(Infinity).filter(Boolean)), element);

  /** A number for people: so many significant digits, ∞ for infinite, a dash for what is missing. */
  L.number = function (value, digits = 4) {
    if (value === null || value === undefined || Number.isNaN(value)) return "–";
    if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
    if (value === 0) return "0";
    const size = Math.abs(value);
    if (Number.isInteger(value) && size < 1e7) return L.whole(value);
    if (size >= 1e5 || size < 1e-3) {
      const [head, power] = value.toExponential(Math.max(0, Math.min(digits, 3) - 1)).split("e");
      return `${minus(head.replace(/\.?0+$/, ""))}e${minus(String(Number(power)))}`;
    }
    const text = value.toPrecision(digits);
    return minus(text.includes(".") ? text.replace(/\.?0+$/, "") : text);
  };

  /** A whole number with its thousands set apart. */
  L.whole = (value) => minus(String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, " "));

  L.percent = (share) => (Number.isFinite(share) ? `${(100 * share).toFixed(1)} %` : "–");

  const minus = (text) => text.replace("-", "−");

  /** JSON's own numbers, and the texts that stand for those which JSON has not. */
  L.real = (value) => ({ nan: NaN, inf: Infinity, "-inf": -Infinity })[value] ?? (typeof value === "number" ? value : NaN);

  L.plural = (count, one, many) => `${L.whole(count)} ${count === 1 ? one : many || `${one}s`}`;

  L.shape = (sizes) => (sizes && sizes.length ? sizes.join(" × ") : "a number");

  /** What a block is, in words: its kind, and how long its shortcut is. */
  L.kind = function (block) {
    const span = block.length ? ` over ${L.plural(block.length, "layer")}` : "";
    if (block.kind === "identity") return `identity skip${span}`;
    if (block.kind === "transition") return `transition, skip${span}${block.note ? `: ${block.note}` : ""}`;
    return block.transition ? "no skip, changes the shape" : "no skip";
  };

  L.OUTLOOKS = {
    healthy: { word: "Healthy", tone: "good", mark: "✓" },
    "trains slowly": { word: "Trains slowly", tone: "warn", mark: "!" },
    "will not train": { word: "Will not train", tone: "bad", mark: "✕" },
    undecided: { word: "Undecided", tone: "open", mark: "?" },
  };

  const STATES = { growing: "growing", done: "done", dead: "dead: its process has gone", unreadable: "cannot be read" };

  /** The mark of a run's state. */
  L.chip = (state) => L.el("span", { class: `chip state-${STATES[state] ? state : "unreadable"}` }, STATES[state] || String(state));

  const LINKS = { block: "block", boundary: "boundary", layer: "layer" };

  /** A place along an axis in words: `block 3`, `boundary 0`; boundaries are counted from 0, the input of block 1. */
  L.place = (axis, index) => `${LINKS[axis] || "place"} ${axis === "boundary" ? index : index + 1}`;

  const READINGS = {
    "gradient_norm_ratio/ratio": "output over input",
    "gradient_norm_ratio/norm": "norm at the input",
    "gradient_norm_ratio/product": "running product",
    "hidden_condition/kappa/batch": "κ over the batch",
    "hidden_condition/kappa/channel": "κ over the channels",
    "hidden_condition/kappa_kept/batch": "κ of what is kept, batch",
    "hidden_condition/kappa_kept/channel": "κ of what is kept, channels",
    "hidden_condition/rank/batch": "rank over the batch",
    "hidden_condition/rank/channel": "rank over the channels",
    "hidden_condition/dead": "dead channels",
    "weight_condition/kappa": "κ, largest over the modes",
    "weight_condition/kappa/mode0": "κ, output channels",
    "weight_condition/kappa/mode1": "κ, input channels",
    "weight_condition/kappa/mode2": "κ, rows of the kernel",
    "weight_condition/kappa/mode3": "κ, columns of the kernel",
    "weight_condition/kappa_kept": "κ of what is kept",
    "weight_condition/lost": "lost directions",
    "operator_condition/kappa": "κ of the operator",
    "operator_condition/sigma_max": "largest σ",
    "operator_condition/sigma_min": "smallest σ",
    "norm_bound/delta": "allowed: δ",
    "norm_bound/deviation": "measured deviation",
    "norm_bound/ratio": "measured ratio",
    "risk_lower_bound/risk/prefix": "least risk so far",
    "risk_lower_bound/gain": "gain of the block",
  };

  const PROBES = {
    gradient_norm_ratio: "Gradient-norm ratio",
    norm_bound: "Norm budget",
    hidden_condition: "Condition of the representations",
    weight_condition: "Condition of the weights",
    operator_condition: "Condition of the layers as operators",
    activation_range: "Activation range",
    gradient_range: "Gradient range",
    weight_range: "Weight range",
    output_range: "Output range",
    update_ratio: "Update over weight",
    weight_norm: "Weight norm",
    collinearity: "Collinearity of samples",
    feature_predictability: "Predictability of features",
    residual_probe: "Linear read-out",
    risk_lower_bound: "Least risk of linear heads",
    hessian_spectrum: "Hessian spectrum",
    generalisation_gap: "Generalisation gap",
    loss: "Training loss",
    evaluate: "Test",
    rehearsal: "Brief trainings",
    start: "At the start",
  };

  L.reading = (probe, name) => READINGS[`${probe}/${name}`] || name;
  L.probe = (name) => PROBES[name] || name.replaceAll("_", " ");
})(window.Leadline);
