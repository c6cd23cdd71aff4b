/* Light and dark: the theme and its switch, the colours of runs, and what all charts look like. */
"use strict";
(function (L) {
  const COLOURS = 8;
  const DASHES = ["solid", "6px,3px", "2px,2px", "8px,3px,2px,3px", "12px,3px", "4px,4px", "1px,3px", "10px,4px,4px,4px"];
  const WORDS = { auto: "Theme: as the system", light: "Theme: light", dark: "Theme: dark" };
  const KEY = "leadline-theme";
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const listeners = new Set();
  let chosen = remembered();
  let forced = null;

  function remembered() {
    try {
      return WORDS[localStorage.getItem(KEY)] ? localStorage.getItem(KEY) : "auto";
    } catch {
      return "auto"; // a page from disk may have no storage
    }
  }

  const current = () => forced || (chosen === "auto" ? (system.matches ? "dark" : "light") : chosen);

  function apply() {
    document.documentElement.dataset.theme = current();
    listeners.forEach((listener) => listener());
  }

  function choose(theme) {
    chosen = theme;
    try {
      localStorage.setItem(KEY, theme);
    } catch {} // then it is forgotten with the page
    apply();
  }

  /** For paper: light until it is called with null. */
  function force(theme) {
    forced = theme;
    apply();
  }

  function button() {
    const order = Object.keys(WORDS);
    const made = L.el("button", { class: "button theme", type: "button", onclick: () => (choose(order[(order.indexOf(chosen) + 1) % 3]), say()) });
    const say = () => (made.textContent = WORDS[chosen]);
    say();
    return made;
  }

  system.addEventListener("change", apply);
  document.documentElement.dataset.theme = current();
  L.theme = { current, choose, force, button, listen: (listener) => (listeners.add(listener), () => listeners.delete(listener)) };

  const token = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  L.token = token;

  /** The colour and the dashes of the run with this number. */
  L.colour = (number) => token(`run-${number % COLOURS}`);
  /** The same for elements, which follow the theme by themselves. */
  L.paint = (number) => `var(--run-${number % COLOURS})`;
  L.dash = (number) => DASHES[number % DASHES.length];

  /** From small to large, readable for the colour-blind; and from below to above a middle. */
  L.scales = () =>
    current() === "dark"
      ? { rising: [[0, "#10213f"], [0.35, "#3f4a7a"], [0.65, "#a08a8c"], [1, "#ffe27a"]], middle: [[0, "#6cb9ff"], [0.5, "#232a33"], [1, "#ffab5e"]], infinite: "#ff5fb0" }
      : { rising: [[0, "#eef3fb"], [0.35, "#a9c1e0"], [0.7, "#4a78ad"], [1, "#0b2a55"]], middle: [[0, "#0b5ea8"], [0.5, "#f3f3f1"], [1, "#b84700"]], infinite: "#c2187f" };

  /** The labels of an axis by powers of ten, between two exponents: powers, or where those are few 1, 2 and 5. */
  L.powers = function (from, to) {
    const first = Math.ceil(from - 1e-9), last = Math.floor(to + 1e-9), found = [];
    const stride = Math.max(1, Math.ceil((last - first) / 5));
    const steps = last - first >= 2 ? [1] : [1, 2, 5];
    for (let power = stride > 1 ? Math.ceil(first / stride) * stride : first - 1; power <= last; power += stride)
      for (const step of steps) if (power + Math.log10(step) >= from && power + Math.log10(step) <= to) found.push(step * 10 ** power);
    const short = (value) => (value >= 1e-3 && value < 1e5 ? L.number(value) : `10<sup>${minus(Math.round(Math.log10(value)))}</sup>`);
    return { tickvals: found, ticktext: found.map((value) => (steps.length > 1 ? L.number(value) : short(value))) };
  };

  const minus = (value) => String(value).replace("-", "−");

  /** What every chart's layout starts from. */
  L.layout = function (height) {
    const ink = token("ink-2"), line = token("line");
    const axis = { type: "linear", ticklabeloverflow: "allow", gridcolor: line, linecolor: line, zeroline: false, tickfont: { size: 11.5 }, ticks: "outside", ticklen: 3, tickcolor: line, fixedrange: L.coarse };
    return {
      height,
      margin: { l: 56, r: 22, t: 8, b: 40 },
      font: { family: token("font") || "system-ui, sans-serif", size: 12, color: ink },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      showlegend: false,
      hovermode: false,
      dragmode: L.coarse ? false : "zoom",
      xaxis: { ...axis, showgrid: false },
      yaxis: { ...axis },
    };
  };

  /** Is this a finger rather than a mouse? Then dragging scrolls and does not zoom. */
  L.coarse = window.matchMedia("(pointer: coarse)").matches;
})(window.Leadline);
