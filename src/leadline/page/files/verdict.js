/* What is wrong, in words: the verdict, its root cause with evidence and remedies, and what else was found. */
"use strict";
(function (L) {
  const CONFIDENCE = {
    title: "How sure the verdict is.",
    text: "From 0 (nothing to tell from) over 0.5 (at the border between two verdicts) to 1 (far from it). It comes from how far and how fast the loss fell against the loss of guessing, and, where training was too short to tell, from what the readings show.",
    normal: "Above 0.8.",
  };

  /** The part of the page that says how one run stands. */
  function verdict(view, entry) {
    const { run } = entry, found = run.diagnosis;
    const outlook = L.OUTLOOKS[(found || {}).verdict] || { word: run.state === "growing" ? "Not judged yet" : "Not judged", tone: "open", mark: "…" };
    const name = view.alone() ? null : L.el("p", { class: "run-name" }, L.el("span", { class: "swatch", style: { background: L.paint(entry.number) } }), run.name);
    const head = L.el(view.alone() ? "h1" : "h2", { class: "outlook" }, L.el("span", { class: "mark", "aria-hidden": "true" }, outlook.mark), outlook.word);
    const sure = found && Number.isFinite(found.confidence) ? L.el("button", { class: "plain-button quiet", type: "button", onclick: () => L.explain(CONFIDENCE) }, `confidence ${found.confidence.toFixed(2)}`) : null;
    const reason = L.el("p", { class: "reason" }, found ? sentence(found.reason) : "No step was read that could be judged.", " ", sure);
    return L.el("section", { class: `verdict card tone-${outlook.tone}`, "aria-label": `Verdict on ${run.name}` }, name, head, reason, found && causes(view, entry, found));
  }

  const NOTHING = {
    healthy: "Nothing was found that would keep it from training.",
    undecided: "What was read names no cause.",
  };

  const sentence = (text) => (text ? `${text[0].toUpperCase()}${text.slice(1)}${/[.!?)]$/.test(text) ? "" : "."}` : "");

  function causes(view, entry, found) {
    const findings = found.findings || [];
    const root = findings.find((one) => one.severity !== "note");
    const others = findings.filter((one) => one !== root);
    const rest = others.length && L.el("details", { class: "more" }, L.el("summary", {}, root ? `${L.plural(others.length, "other finding")}` : L.plural(others.length, "note")), others.map((one) => finding(view, entry, one)));
    return [root && finding(view, entry, root, true), !root && findings.length === 0 && L.el("p", { class: "quiet" }, NOTHING[found.verdict] || NOTHING.undecided), rest].filter(Boolean);
  }

  /** One cause: the sentence first, then the numbers that show it, what follows from it, and what to do. */
  function finding(view, entry, one, root = false) {
    const card = (entry.run.rules || {})[one.id];
    const why = card && L.why(one.id, () => L.explain({ ...card, title: `${one.id}: ${card.title}` }));
    const head = L.el("h3", {}, root ? L.el("span", { class: "eyebrow" }, "Root cause") : null, sentence(one.title).replace(/\.$/, ""), " ", L.el("span", { class: `chip severity-${one.severity}` }, one.id), why);
    const evidence = (one.evidence || []).length ? L.el("ul", { class: "evidence" }, one.evidence.map((line) => L.el("li", {}, sentence(line)))) : null;
    const follows = (one.consequences || []).map((each) => L.el("p", { class: "follows" }, L.el("span", { class: "quiet" }, "Follows from it: "), each.title, " ", L.el("span", { class: `chip severity-${each.severity}` }, each.id), each.evidence && each.evidence.length ? L.el("span", { class: "quiet" }, ` ${sentence(each.evidence[0])}`) : null));
    const said = L.el("div", { class: "said" }, L.el("p", { class: "cause" }, one.cause), evidence, places(view, entry, one), follows, L.el("p", { class: "quiet small" }, one.reference));
    return L.el("article", { class: root ? "finding root" : "finding" }, head, L.el("div", { class: "two" }, said, one.severity === "note" ? null : remedies(entry, one)));
  }

  /** The blocks that a finding speaks of, as buttons that show them. */
  function places(view, entry, one) {
    const named = Object.entries(one.places || {});
    if (!named.length) return null;
    const go = (at) => (view.pick(view.scaled(entry.run, at)), view.reveal("profile"));
    return L.el("p", { class: "places" }, L.el("span", { class: "quiet" }, "Look at: "), named.map(([name, at]) => L.el("button", { class: "button place", type: "button", onclick: () => go(at) }, name)));
  }

  function remedies(entry, one) {
    const tried = new Map((((entry.run.proofs || {}).trials) || []).map((trial) => [trial.remedy, trial.outcome]));
    const line = ({ name, why }) => L.el("li", {}, L.el("b", {}, name), tried.has(name) ? L.el("span", { class: `chip outcome-${tried.get(name).replaceAll(" ", "-")}` }, tried.get(name)) : null, L.el("div", { class: "quiet" }, why));
    return L.el("div", { class: "todo" }, L.el("h4", {}, tried.size ? "What to do, and what it did" : "What to do"), L.el("ol", {}, (one.remedies || []).map(line)), one.change ? L.el("p", { class: "quiet small" }, `Would change the verdict: ${one.change}.`) : null);
  }

  // -- facts ---------------------------------------------------------------------------------------------------------

  /** The few numbers that one looks for first. */
  function facts(view, entry) {
    const { run, store } = entry;
    const box = L.el("dl", { class: "facts" });
    const wanted = [["loss", "train/loss"], ["evaluate", "test/loss"], ["evaluate", "test/accuracy"], ["generalisation_gap", "gap"]].map(([probe, name]) => store.find(probe, name, true));
    const fact = (label, value, card) => L.el("div", {}, L.el("dt", {}, card ? L.el("button", { class: "plain-button", type: "button", onclick: () => L.explain(card) }, label) : label), L.el("dd", { class: "number" }, value));
    function update() {
      const [loss, test, accuracy, gap] = wanted.map((course) => (course && course.ready ? course.last() : NaN));
      const steps = wanted[0] && wanted[0].steps.length ? wanted[0].steps[wanted[0].steps.length - 1] + 1 : 0;
      const cards = run.cards || {}, known = (label, value, text, card) => (Number.isNaN(value) ? null : fact(label, text(value), card));
      L.fill(box,
        L.depth.blocks(run).length ? fact("Blocks", L.whole(L.depth.blocks(run).length)) : null,
        run.parameters || run.anatomy.parameters ? fact("Parameters", L.whole(run.parameters || run.anatomy.parameters)) : null,
        fact("Steps", run.steps && run.state === "growing" ? `${L.whole(steps)} of ${L.whole(run.steps)}` : L.whole(steps)),
        known("Training loss", loss, L.number, cards.loss), known("Test loss", test, L.number, cards.evaluate), known("Test accuracy", accuracy, L.percent, cards.evaluate),
        known("Generalisation gap", gap, (value) => `${L.number(value, 3)} %`, cards.generalisation_gap),
        run.seed !== null && run.seed !== undefined ? fact("Seed", String(run.seed)) : null);
    }
    store.need(wanted).then(update);
    update();
    return { element: box, update, entry };
  }

  // -- explanations --------------------------------------------------------------------------------------------------

  /** The question mark that explains. */
  L.why = (label, onclick) => L.el("button", { class: "why", type: "button", "aria-label": `Explain ${label}`, title: "What is this?", onclick }, "?");

  /** A card in a dialogue: what it is with its formulas, what is normal, where it comes from, what it costs. */
  L.explain = function (card) {
    const close = L.el("button", { class: "button", type: "button", onclick: () => box.close() }, "Close");
    const part = (name, text) => text && [L.el("h4", {}, name), prose(text)];
    const box = L.el("dialog", { class: "explain", "aria-label": card.title }, L.el("h3", {}, card.title), prose(card.text || ""), part("Normal", card.normal), limits(card.limits), part("Reference", card.reference), part("Cost", card.cost), close);
    box.addEventListener("close", () => box.remove());
    box.addEventListener("click", (event) => event.target === box && box.close());
    document.body.append(box);
    box.showModal();
  };

  const limits = (all) => all && Object.keys(all).length > 0 && [L.el("h4", {}, "Limits"), L.el("p", {}, Object.entries(all).map(([name, value]) => `${name} ${L.number(value)}`).join(", "))];

  /** Paragraphs; what is indented is a formula and keeps its form. */
  function prose(text) {
    return String(text).split("\n").filter((line) => line.trim()).map((line) => (/^ {2}/.test(line) || / {4}/.test(line) ? L.el("pre", {}, line.trim()) : L.el("p", {}, line)));
  }

  Object.assign(L, { verdict, facts });
})(window.Leadline);
