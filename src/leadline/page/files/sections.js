/* The page from top to bottom: which sections there are, and the controls they have in common. */
"use strict";
(function (L) {
  const TITLES = { verdict: "Verdict", profile: "Depth profile", map: "Block × step", learning: "Learning", hessian: "Hessian", remedies: "Remedies", numbers: "Numbers", origin: "Origin" };

  /** Fills the element of a view; leaves `charts`, `strips`, `facts`, `table`, and in `parts` what can be drawn alone. */
  L.sections = function (view) {
    Object.assign(view, { charts: [], strips: [], facts: [], parts: {} });
    const found = [verdicts(view), profile(view), map(view), section("learning", grid(view, [...L.learning(view), ...L.others(view)])), hessian(view), remedies(view), numbers(view), origin(view)].filter(Boolean);
    L.fill(view.element, top(view, found), ...(view.all.length ? found : [L.el("p", { class: "quiet card" }, "No run to show.")]));
  };

  const section = (name, ...content) => L.el("section", { class: "part", "data-part": name, "aria-label": TITLES[name] }, name === "verdict" ? null : L.el("h2", {}, TITLES[name]), content);

  function grid(view, charts) {
    view.charts.push(...charts);
    return L.el("div", { class: "grid" }, charts.map((chart) => chart.element));
  }

  /** Who this is about, links to the sections, and the theme. */
  function top(view, found) {
    const links = found.map((each) => each.dataset.part).filter((name) => name !== "verdict").map((name) =>
      L.el("a", { href: `#${name}`, onclick: (event) => (event.preventDefault(), view.reveal(name)) }, TITLES[name]));
    const who = L.el("div", { class: "who" });
    view.parts.head = () => {
      const { run } = view.all[0] || {};
      const model = run && view.alone() ? [L.el("strong", {}, run.name), L.chip(run.state), run.name.startsWith(run.model) ? null : L.el("span", { class: "quiet" }, run.model)] : [L.el("strong", {}, L.plural(view.all.length, "run"))];
      L.fill(who, model);
    };
    view.parts.head();
    return L.el("header", { class: "top" }, L.el("span", { class: "brand" }, L.el("span", { class: "lead", "aria-hidden": "true" }), "Leadline"), who, L.el("nav", { "aria-label": "Sections" }, links), L.theme.button());
  }

  function verdicts(view) {
    const box = L.el("div", { class: view.alone() ? "verdicts" : "verdicts many" });
    view.parts.verdicts = () => {
      view.facts = view.all.map((entry) => L.facts(view, entry));
      L.fill(box, view.all.map((entry, k) => { const card = L.verdict(view, entry); card.append(view.facts[k].element); return card; }));
    };
    view.parts.verdicts();
    return section("verdict", box);
  }

  // -- the profile ---------------------------------------------------------------------------------------------------

  function profile(view) {
    const all = L.panels.list(view);
    const first = grid(view, all.filter((panel) => !panel.more).map((panel) => L.panels.chart(view, panel)));
    const rest = all.filter((panel) => panel.more), strips = L.el("div", { class: "strips" });
    view.parts.strips = () => {
      view.strips = view.shown().map((entry) => L.strip(view, entry)).filter(Boolean);
      L.fill(strips, view.strips.map((strip) => strip.element));
    };
    view.parts.strips();
    const more = rest.length ? L.el("details", { class: "more", open: view.open.has("profile") }, L.el("summary", {}, `More readings along depth (${rest.length})`), grid(view, rest.map((panel) => L.panels.chart(view, panel)))) : null;
    if (more) more.addEventListener("toggle", () => (more.open ? view.open.add("profile") : view.open.delete("profile"), view.charts.forEach((chart) => chart.dirty && chart.change())));
    return section("profile", controls(view), strips, all.length ? [first, legend(view)] : L.el("p", { class: "quiet" }, "Nothing was read along depth."), more);
  }

  /** Runs on and off, the step, and how the axes are to be. */
  function controls(view) {
    const toggles = view.alone() ? null : L.el("div", { class: "toggles", role: "group", "aria-label": "Runs shown" }, view.all.map((entry) => toggle(view, entry)));
    const slider = L.el("input", { type: "range", min: "0", "aria-label": "Step", "data-key": "slider", oninput: () => view.go(view.steps[Number(slider.value)]) });
    const label = L.el("output", { class: "number" });
    const play = L.el("button", { class: "button play", type: "button", "aria-label": "Play through the steps", onclick: () => run(view, play) }, "▶");
    view.parts.slider = () => {
      slider.max = String(Math.max(0, view.steps.length - 1));
      slider.value = String(Math.max(0, view.steps.indexOf(view.step)));
      slider.setAttribute("aria-valuetext", `step ${view.step}`);
      label.textContent = `step ${L.whole(view.step)}`;
      slider.disabled = play.disabled = view.steps.length < 2;
    };
    view.parts.slider();
    const fit = option("Fit axes to this step", view.fit, (on) => ((view.fit = on), view.charts.forEach((chart) => chart.depth && chart.change(true))));
    const counts = new Set(view.all.map((entry) => L.depth.count(entry.run)));
    const relative = counts.size > 1 ? option("Relative depth", view.relative, (on) => ((view.relative = on), (view.pinned = null), view.charts.forEach((chart) => (chart.depth || chart.map) && chart.change(true)))) : null;
    return L.el("div", { class: "toolbar" }, toggles, L.el("div", { class: "steps" }, play, slider, label), L.el("div", { class: "options" }, fit, relative));
  }

  function toggle(view, entry) {
    const line = L.el("svg", { class: "sample", viewBox: "0 0 26 8", "aria-hidden": "true" }, L.el("line", { x1: 0, x2: 26, y1: 4, y2: 4, stroke: L.paint(entry.number), "stroke-width": 2.5, "stroke-dasharray": L.dash(entry.number) === "solid" ? "" : L.dash(entry.number).replaceAll("px", "") }));
    return L.el("button", { class: "button toggle", type: "button", "aria-pressed": String(entry.on), "data-key": `toggle ${entry.run.id}`, onclick: () => view.toggle(entry) }, line, entry.run.name);
  }

  function option(text, on, change) {
    const box = L.el("input", { type: "checkbox", checked: on, onchange: () => change(box.checked) });
    return L.el("label", { class: "option" }, box, text);
  }

  /** From the first step to the last, about eight a second. */
  function run(view, button) {
    const stop = () => (clearInterval(view.playing), (view.playing = null), (button.textContent = "▶"));
    if (view.playing) return stop();
    let index = view.steps.indexOf(view.step) >= view.steps.length - 1 ? -1 : view.steps.indexOf(view.step);
    const stride = Math.max(1, Math.ceil(view.steps.length / 120));
    button.textContent = "❚❚";
    view.playing = setInterval(() => {
      index = Math.min(view.steps.length - 1, index + stride);
      view.go(view.steps[index]);
      if (index >= view.steps.length - 1 || !button.isConnected) stop();
    }, 125);
  }

  function legend(view) {
    const words = ["dotted: transitions, where shape or skip changes", "green: normal range", "▲ infinite", "▼ zero", "× not measured"];
    return L.el("p", { class: "caption" }, `${words.join(" · ")}. Ranges: median, 25 to 75 % and 1 to 99 % shaded, extremes as thin lines.`);
  }

  // -- the others ----------------------------------------------------------------------------------------------------

  function map(view) {
    const made = L.maps(view);
    if (!made) return null;
    view.charts.push(...made.charts);
    return section("map", made.element);
  }

  function hessian(view) {
    const charts = L.spectrum(view);
    return charts.length ? section("hessian", grid(view, charts)) : null;
  }

  function remedies(view) {
    const made = view.all.map((entry) => ({ entry, proof: L.proofs(view, entry) })).filter(({ proof }) => proof);
    if (!made.length) return null;
    made.forEach(({ proof }) => view.charts.push(...proof.charts));
    return section("remedies", made.map(({ entry, proof }) => [view.alone() ? null : L.el("h3", {}, entry.run.name), proof.element]));
  }

  function numbers(view) {
    view.table = L.table(view);
    return section("numbers", view.table.element);
  }

  function origin(view) {
    const box = L.el("div", {});
    view.parts.origin = () => L.fill(box, L.origin(view));
    view.parts.origin();
    return section("origin", box);
  }
})(window.Leadline);
