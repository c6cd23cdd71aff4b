/* Where a run's numbers come from: configuration, seed, data, software and machine; of several runs side by side. */
"use strict";
(function (L) {
  /** Nested data as `part.field` and text. */
  function flat(value, name, into) {
    if (value && typeof value === "object" && !Array.isArray(value)) for (const [key, inner] of Object.entries(value)) flat(inner, name ? `${name}.${key}` : key, into);
    else if (value !== null && value !== undefined && value !== "") into.set(name, Array.isArray(value) ? value.map((one) => (typeof one === "object" ? JSON.stringify(one) : one)).join(", ") : String(value));
    return into;
  }

  function about({ run }) {
    const found = new Map([["run", run.name], ["state", run.state]]);
    for (const [name, value] of [["of", run.of], ["kind", run.kind], ["digest of the configuration", run.digest], ["digest of the data", run.data_digest], ["seed", run.seed], ["mode", run.mode], ["dtype", run.dtype], ["steps", run.steps], ["steps an epoch", run.steps_per_epoch]]) flat(value, name, found);
    flat(run.environment, "", found);
    const outcome = { ...run.outcome };
    delete outcome.format;
    flat(outcome, "outcome", found);
    const gaps = run.anatomy || {};
    for (const name of ["stem", "head", "gaps", "not_measured"]) if ((gaps[name] || []).length) flat(gaps[name], `anatomy: ${name.replace("_", " ")}`, found);
    return found;
  }

  const configured = ({ run }) => flat(run.config, "", new Map());

  /** A table with one column a run; rows in which they differ are marked. */
  function columns(view, title, of) {
    const all = view.entries().map((entry) => [entry, of(entry)]);
    const names = [...new Set(all.flatMap(([, found]) => [...found.keys()]))];
    if (!names.length) return null;
    const row = (name) => {
      const values = all.map(([, found]) => found.get(name) ?? "");
      const differ = new Set(values).size > 1;
      return L.el("tr", { class: differ ? "differ" : "" }, L.el("th", { scope: "row" }, name), values.map((value) => L.el("td", { class: "code" }, value)));
    };
    const head = view.alone() ? null : L.el("thead", {}, L.el("tr", {}, L.el("td", {}), all.map(([{ run }]) => L.el("th", { scope: "col" }, run.name))));
    return L.el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title }, L.el("table", { class: "plain facts-table" }, L.el("caption", {}, title), head, L.el("tbody", {}, names.map(row))));
  }

  function origin(view) {
    const notes = view.entries().flatMap(({ run }) => (run.notes || []).map((note) => (view.alone() ? note : `${run.name}: ${note}`)));
    return L.el("div", {}, notes.length ? L.el("ul", { class: "notes" }, notes.map((note) => L.el("li", {}, note))) : null, L.el("div", { class: "pair" }, columns(view, "Where it ran", about), columns(view, "Configuration", configured)));
  }

  L.origin = origin;
})(window.Leadline);
