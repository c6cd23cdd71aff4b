/* The list of runs: one row each, changed where it changes. Text is only ever set as text. */
"use strict";
(function (L) {
  const MOST = 16; // runs on one page
  const RANK = { growing: 0, done: 1, dead: 2, unreadable: 3 };
  const COLUMNS = [
    { id: "name", title: "Run", by: (row) => row.name.toLowerCase() },
    { id: "state", title: "State", by: (row) => [RANK[row.state] ?? 4, row.name] },
    { id: "progress", title: "Progress", by: (row) => -share(row) },
    { id: "loss", title: "Last loss", by: (row) => finite(L.real(row.loss)) },
    { id: "verdict", title: "Verdict so far", by: (row) => ["will not train", "trains slowly", "undecided", "healthy", ""].indexOf(row.verdict) },
    { id: "changed", title: "Changed", by: (row) => -row.changed },
  ];
  const rows = new Map(), shown = new Map(), chosen = new Set();
  let order = { id: "", down: false }, wanted = "", only = "";

  const finite = (value) => (Number.isFinite(value) ? value : Infinity);
  const share = (row) => (row.steps ? (row.step || 0) / row.steps : row.step ? 0 : -1);

  // -- one row -----------------------------------------------------------------------------------------------------

  const write = (element, text) => element.textContent === text || (element.textContent = text);

  function build(key) {
    const parts = {
      box: L.el("input", { type: "checkbox", onchange: (event) => choose(key, event.target.checked) }),
      link: L.el("a", { href: `show?run=${encodeURIComponent(key)}` }),
      model: L.el("span", { class: "quiet" }),
      state: L.el("td", { role: "cell", class: "state" }),
      bar: L.el("progress", { max: 1 }),
      steps: L.el("span", { class: "number" }),
      loss: L.el("span", { class: "number" }),
      course: L.el("span", { class: "course" }),
      verdict: L.el("td", { role: "cell", class: "verdict" }),
      changed: L.el("time", {}),
    };
    parts.element = L.el("tr", { role: "row" },
      L.el("td", { role: "cell", class: "choose" }, L.el("label", {}, parts.box)),
      L.el("th", { role: "rowheader", scope: "row", class: "name" }, parts.link, parts.model),
      parts.state,
      L.el("td", { role: "cell", class: "progress" }, parts.bar, parts.steps),
      L.el("td", { role: "cell", class: "loss" }, parts.loss, parts.course),
      parts.verdict,
      L.el("td", { role: "cell", class: "changed" }, parts.changed));
    return parts;
  }

  function draw(row) {
    let parts = shown.get(row.key);
    if (!parts) shown.set(row.key, (parts = build(row.key)));
    const former = parts.row || {};
    parts.row = row;
    write(parts.link, row.name);
    write(parts.model, row.model === row.name ? "" : row.model);
    parts.box.setAttribute("aria-label", `choose ${row.name}`);
    parts.box.disabled = row.state === "unreadable";
    if (former.state !== row.state) {
      parts.element.dataset.state = row.state;
      L.fill(parts.state, chip(row));
    }
    const text = progress(row);
    write(parts.steps, text);
    parts.bar.hidden = !row.steps;
    parts.bar.value = Math.max(0, share(row));
    parts.bar.setAttribute("aria-label", text);
    write(parts.loss, row.loss === null ? "" : L.number(L.real(row.loss), 3));
    if (String(former.losses) !== String(row.losses)) L.fill(parts.course, course(row.losses));
    if (told(former) !== told(row)) L.fill(parts.verdict, verdict(row));
    age(parts);
  }

  /** The words of L.chip are for a page with room. */
  function chip(row) {
    const made = L.chip(row.state);
    if (row.state === "dead") made.textContent = "dead";
    made.title = { dead: "its process has gone before it was done", growing: "its process is writing it" }[row.state] || "";
    return made;
  }

  function progress(row) {
    if (row.step === null) return row.steps ? `of ${L.plural(row.steps, "step")}` : "";
    return row.steps ? `${L.whole(row.step)} of ${L.whole(row.steps)}` : L.plural(row.step, "step");
  }

  /** The training loss from the start to now, on a scale of powers where it can be. */
  function course(losses) {
    const values = losses.map(L.real), known = values.filter(Number.isFinite);
    if (known.length < 2) return null;
    const scale = Math.min(...known) > 0 ? Math.log : (value) => value;
    const low = scale(Math.min(...known)), high = scale(Math.max(...known)), width = 96, height = 24;
    const at = (value, k) => [
      (2 + (k / (values.length - 1)) * (width - 4)).toFixed(1),
      (high === low ? height / 2 : height - 3 - ((scale(value) - low) / (high - low)) * (height - 6)).toFixed(1),
    ];
    const points = values.map((value, k) => (Number.isFinite(value) ? at(value, k).join(",") : null)).filter(Boolean);
    const label = `loss from ${L.number(known[0], 3)} to ${L.number(known[known.length - 1], 3)}`;
    return L.el("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label }, L.el("polyline", { points: points.join(" ") }));
  }

  const told = (row) => JSON.stringify([row.verdict, row.root, row.reason, row.notes, row.state === "growing"]);

  function verdict(row) {
    const look = L.OUTLOOKS[row.verdict];
    const word = look && L.el("span", { class: `outlook tone-${look.tone}` }, L.el("span", { "aria-hidden": "true" }, look.mark), ` ${look.word}`);
    const sofar = look && row.state === "growing" ? L.el("span", { class: "quiet" }, " so far") : null;
    const why = row.root || (row.verdict === "healthy" ? "" : row.reason);
    return [
      look ? L.el("div", {}, word, sofar) : null,
      why ? L.el("div", { class: "why", title: row.reason }, why) : null,
      ...row.notes.map((note) => L.el("div", { class: "note" }, note)),
    ];
  }

  function age(parts) {
    const row = parts.row;
    if (!row.changed) return write(parts.changed, "");
    const at = new Date(1000 * row.changed), seconds = Math.max(0, Date.now() / 1000 - row.changed);
    const steps = [[90, 1, "s"], [5400, 60, "min"], [129600, 3600, "h"], [Infinity, 86400, "d"]];
    const [, unit, name] = steps.find(([end]) => seconds < end);
    write(parts.changed, seconds < 2 ? "now" : `${Math.round(seconds / unit)} ${name} ago`);
    if (parts.at === row.changed) return;
    parts.at = row.changed;
    parts.changed.dateTime = at.toISOString();
    parts.changed.title = at.toLocaleString();
  }

  // -- the table ---------------------------------------------------------------------------------------------------

  const body = L.el("tbody", { role: "rowgroup" });
  const nothing = L.el("p", { class: "quiet wait", hidden: true });
  const heads = COLUMNS.map((column) =>
    L.el("th", { role: "columnheader", scope: "col", class: column.id }, L.el("button", { type: "button", onclick: () => sort(column.id) }, column.title)));

  function sort(id) {
    order = order.id !== id ? { id, down: false } : order.down ? { id: "", down: false } : { id, down: true };
    heads.forEach((head, k) => {
      if (COLUMNS[k].id === order.id) head.setAttribute("aria-sort", order.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    arrange();
  }

  /** As they stand by themselves: what grows first, the one begun last on top; then what changed last. */
  const natural = (row) => (row.state === "growing" ? [0, negative(row.started)] : [1, -row.changed]);
  const negative = (started) => -(Date.parse(started) || 0);

  function compare(a, b) {
    if (Array.isArray(a)) return a.map((_, k) => compare(a[k], b[k])).find(Boolean) || 0;
    return a < b ? -1 : a > b ? 1 : 0;
  }

  function arrange() {
    const column = COLUMNS.find((one) => one.id === order.id);
    const sign = order.down ? -1 : 1, by = column ? column.by : natural;
    const found = [...rows.values()].filter(matches).map((row) => [by(row), row]);
    found.sort(([a, one], [b, other]) => sign * compare(a, b) || compare(one.name, other.name));
    const wanted = found.map(([, row]) => shown.get(row.key).element);
    if (wanted.length !== body.children.length || wanted.some((element, k) => body.children[k] !== element)) place(wanted);
    table.hidden = !rows.size;
    nothing.hidden = found.length > 0;
    write(nothing, rows.size ? "No run is like that." : trouble || "No runs yet. They appear here as soon as they begin.");
  }

  /** Moves what has to be moved: an element that stays keeps its focus. */
  function place(elements) {
    const stay = new Set(elements);
    [...body.children].forEach((child) => stay.has(child) || child.remove());
    elements.forEach((element, k) => body.children[k] === element || body.insertBefore(element, body.children[k] || null));
  }

  const matches = (row) =>
    (!only || row.state === only || (only === "dead" && row.state === "unreadable")) &&
    (!wanted || [row.name, row.model, row.verdict, row.root].some((text) => text.toLowerCase().includes(wanted)));

  // -- around it ---------------------------------------------------------------------------------------------------

  const [status, says] = L.status();
  const title = L.el("h1", {}, "Runs"), folder = L.el("p", { class: "quiet folder" });
  const filter = L.el("input", { type: "search", "aria-label": "only runs like this", placeholder: "Filter by name, model, verdict", oninput: () => ((wanted = filter.value.trim().toLowerCase()), arrange()) });
  const states = ["", "growing", "done", "dead"].map((state) =>
    L.el("button", { type: "button", class: "button", "aria-pressed": String(!state), onclick: () => pick(state) }));

  function pick(state) {
    only = state;
    states.forEach((button, k) => button.setAttribute("aria-pressed", String(["", "growing", "done", "dead"][k] === state)));
    arrange();
  }

  function count() {
    const found = { growing: 0, done: 0, dead: 0 };
    rows.forEach((row) => (found[row.state === "unreadable" ? "dead" : row.state] += 1));
    ["all", "growing", "done", "dead"].forEach((word, k) => write(states[k], `${word} ${L.whole(k ? found[word] : rows.size)}`));
  }

  const together = L.el("a", { class: "button main" }), chosenBar = L.el("div", { class: "chosen", role: "region", "aria-label": "chosen runs", hidden: true },
    together, L.el("button", { type: "button", class: "button", onclick: () => clear() }, "Clear"), L.el("span", { class: "quiet", role: "status" }));

  function choose(key, on) {
    if (on) chosen.add(key);
    else chosen.delete(key);
    const over = chosen.size > MOST;
    chosenBar.hidden = !chosen.size;
    write(together, chosen.size === 1 ? "Show 1 run" : `Show ${chosen.size} runs together`);
    if (over) together.removeAttribute("href");
    else together.href = `show?${[...chosen].map((key) => `run=${encodeURIComponent(key)}`).join("&")}`;
    write(chosenBar.lastChild, over ? `at most ${MOST} together` : "");
  }

  function clear() {
    [...chosen].forEach((key) => {
      choose(key, false);
      if (shown.has(key)) shown.get(key).box.checked = false;
    });
  }

  const head = L.el("thead", { role: "rowgroup" }, L.el("tr", { role: "row" },
    L.el("td", { role: "columnheader", class: "choose" }, L.el("span", { class: "unseen" }, "Choose")), heads));
  const table = L.el("table", { role: "table", class: "runs", "aria-label": "runs", hidden: true }, head, body);
  document.getElementById("bar").append(
    L.el("div", { class: "titles" }, title, folder), L.el("div", { class: "tools" }, status, L.theme.button()));
  L.fill(document.getElementById("runs"),
    L.el("div", { class: "filters" }, filter, L.el("div", { class: "states", role: "group", "aria-label": "only runs that are" }, states)),
    table, nothing, chosenBar);

  let trouble = "";
  function take(news) {
    if (news.keys) {
      const there = new Set(news.keys);
      [...rows.keys()].filter((key) => !there.has(key)).forEach((key) => {
        rows.delete(key);
        shown.delete(key);
        if (chosen.has(key)) choose(key, false);
      });
    }
    news.rows.forEach((row) => {
      rows.set(row.key, row);
      draw(row);
    });
    trouble = news.trouble;
    count();
    arrange();
  }

  window.setInterval(() => shown.forEach(age), 5000);
  fetch("about.json").then((answer) => answer.json()).then((about) => write(folder, about.folder)).catch(() => {});
  count();
  L.follow(() => "events/list", { rows: take }, says);
})(window.Leadline);
