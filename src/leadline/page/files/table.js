/* Every number: a table of one probe at one step, and all of it as CSV. */
"use strict";
(function (L) {
  const SHOWN = 60;
  const HEAD = "run,step,probe,reading,axis,place,name,value,note\r\n";

  /** A table with its choices: the run, the probe, and whether all places are shown. */
  function table(view) {
    const state = { run: null, probe: null, all: false };
    const runs = L.el("select", { "aria-label": "Run of the table", onchange: () => ((state.run = runs.value), choices(), change()) });
    const probes = L.el("select", { "aria-label": "Probe of the table", onchange: () => ((state.probe = probes.value), change()) });
    const download = L.el("button", { class: "button", type: "button", onclick: () => csv(view.entries(), download) }, "Download all as CSV");
    const part = L.el("button", { class: "button", type: "button", onclick: () => csv([current()], part, state.probe) }, "Download this probe");
    const about = L.el("span", {});
    const box = L.el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of numbers" });
    const note = L.el("p", { class: "caption" });
    const element = L.el("div", {}, L.el("div", { class: "bar" }, view.alone() ? null : L.el("label", {}, "Run ", runs), L.el("label", {}, "Probe ", probes), about, L.el("span", { class: "push" }), part, download), box, note);
    const made = { element, change, seen: false, dirty: true };
    made.watch = new IntersectionObserver(([found]) => ((made.seen = found.isIntersecting), made.seen && made.dirty && change()), { rootMargin: "300px" });
    made.watch.observe(element);

    const current = () => view.entries().find((entry) => entry.run.id === state.run) || view.entries()[0];

    function choices() {
      L.fill(runs, view.entries().map(({ run }) => L.el("option", { value: run.id, selected: run.id === state.run }, run.name)));
      const entry = current(), names = entry ? [...new Set(entry.store.list().map((course) => course.probe))] : [];
      if (!names.includes(state.probe)) state.probe = names.includes("gradient_norm_ratio") ? "gradient_norm_ratio" : names[0];
      L.fill(probes, names.map((name) => L.el("option", { value: name, selected: name === state.probe }, L.probe(name))));
    }

    async function change() {
      made.dirty = !made.seen;
      const entry = current();
      if (made.dirty || !entry || !state.probe) return;
      const courses = entry.store.list(state.probe);
      await entry.store.need(courses);
      L.fill(about, view.about(state.probe));
      const along = courses.filter((course) => course.places), scalars = courses.filter((course) => !course.places);
      L.fill(box, along.length ? depths(view, entry, along, state, change) : null, scalars.length ? series(entry, scalars) : null);
      const exact = entry.run.bits < 12 ? "to 0.4 %" : entry.run.bits < 20 ? "to four digits" : "to six digits";
      note.textContent = `Numbers are kept ${exact} in this page; readings.jsonl of the run has all their digits.`;
    }

    choices();
    made.choices = choices;
    return made;
  }

  /** One row a place, one column a reading, at the step of the slider. */
  function depths(view, entry, courses, state, change) {
    const told = courses.map((course) => ({ course, index: course.at(view.step) })).filter(({ index }) => index >= 0);
    if (!told.length) return L.el("p", { class: "quiet" }, "Not read up to this step.");
    const where = L.depth.along(entry.run, told[0].course), count = told[0].course.places;
    const rows = Array.from({ length: state.all ? count : Math.min(count, SHOWN) }, (_, place) =>
      L.el("tr", {}, L.el("th", { scope: "row" }, L.el("span", { class: "quiet number" }, String(where.axis === "boundary" ? place : place + 1)), " ", where.names[place] || ""), told.map(({ course, index }) => cell(entry, course, index, place))));
    const head = L.el("tr", {}, L.el("th", { scope: "col" }, where.axis), told.map(({ course }) => L.el("th", { scope: "col", class: "number", title: L.reading(course.probe, course.name) }, course.name)));
    const more = count > SHOWN && !state.all ? L.el("button", { class: "button", type: "button", onclick: () => ((state.all = true), change()) }, `Show all ${L.whole(count)} rows`) : null;
    const caption = L.el("caption", {}, `${L.probe(told[0].course.probe)} at step ${L.whole(told[0].course.steps[told[0].index])}`);
    return [L.el("table", { class: "numbers" }, caption, L.el("thead", {}, head), L.el("tbody", {}, rows)), more];
  }

  function cell(entry, course, index, place) {
    const value = course.rows[index][place], note = Number.isNaN(value) ? course.note(index, place) : "";
    return L.el("td", { class: "number", title: note || null }, L.number(value, entry.digits), note ? L.el("span", { class: "unseen" }, note) : null);
  }

  /** Scalars over the steps, the newest first. */
  function series(entry, courses) {
    const steps = [...new Set(courses.flatMap((course) => course.steps))].sort((one, other) => other - one).slice(0, SHOWN);
    const row = (step) => L.el("tr", {}, L.el("th", { scope: "row", class: "number" }, L.whole(step)), courses.map((course) => { const k = course.at(step); return k >= 0 && course.steps[k] === step ? cell(entry, course, k, 0) : L.el("td", {}); }));
    const head = L.el("tr", {}, L.el("th", { scope: "col", class: "number" }, "step"), courses.map((course) => L.el("th", { scope: "col", class: "number" }, course.name)));
    return L.el("table", { class: "numbers" }, L.el("caption", {}, `${L.probe(courses[0].probe)}, single numbers, newest first`), L.el("thead", {}, head), L.el("tbody", {}, steps.map(row)));
  }

  // -- CSV -----------------------------------------------------------------------------------------------------------

  const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  /** Spreadsheets take what begins so for a formula. */
  const harmless = (text) => quoted(/^[=+\-@\t]/.test(text) ? `'${text}` : text);

  function written(value, digits) {
    if (Number.isNaN(value)) return "nan";
    if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
    return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(digits)));
  }

  /** One line a number, of the runs given; one course after the other, so that the page stays alive. */
  async function csv(entries, button, probe) {
    const parts = [HEAD], label = button.textContent;
    button.disabled = true;
    for (const entry of entries.filter(Boolean)) {
      const courses = entry.store.list(probe), digits = entry.run.bits < 12 ? 3 : entry.run.bits < 20 ? 5 : 7;
      await entry.store.need(courses);
      for (const [k, course] of courses.entries()) {
        parts.push(lines(entry.run, course, digits));
        if (k % 8 === 7) (button.textContent = `${Math.round((100 * k) / courses.length)} %`), await new Promise((go) => setTimeout(go));
      }
    }
    button.textContent = label;
    button.disabled = false;
    save(new Blob(parts, { type: "text/csv" }), `${probe ? `${entries[0].run.name}-${probe}` : entries.length === 1 ? entries[0].run.name : "leadline"}.csv`);
  }

  function lines(run, course, digits) {
    const where = course.places ? L.depth.along(run, course) : null;
    const head = course.steps.map((step) => `${harmless(run.name)},${step},${harmless(course.probe)},${harmless(course.name)},`);
    const names = where ? Array.from({ length: course.places }, (_, k) => `${where.axis},${where.axis === "boundary" ? k : k + 1},${harmless(where.names[k] || "")}`) : [",,"];
    let text = "";
    course.rows.forEach((row, index) => {
      for (let place = 0; place < row.length; place++) {
        const note = course.notes.length ? course.note(index, where ? place : -1) : "";
        text += `${head[index]}${names[place]},${written(row[place], digits)},${note ? harmless(note) : ""}\r\n`;
      }
    });
    return text;
  }

  function save(blob, name) {
    const address = URL.createObjectURL(blob);
    const link = L.el("a", { href: address, download: name.replace(/[^\w.-]+/g, "_") });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(address), 60000);
  }

  L.table = table;
})(window.Leadline);
