/* The page of one or more runs: what to call.

  Leadline.show(element, runs) -> view
      Fills `element` (its children are taken away) with the page of `runs`, a list of what Python's
      `leadline.page.describe` gives; an empty list is fine. Returns at once: text first, charts when plotly is there
      and they come into sight. Everything a run says is shown as text, never as markup. Nothing is requested.

  view.add(run)             shows another run beside the others; one with an id that is shown replaces that one
  view.replace(id, run)     the same run described anew (it began again, or its folder was judged); its colour, its
                            toggle and the chosen step stay. `run.id` may differ from `id`
  view.remove(id)           takes a run off the page; an id that is not shown is left unsaid
  view.append(id, readings) readings that were written since, as the store's own lines parsed as JSON:
                            {step, probe, name, value, notes?}, value a number, "nan" | "inf" | "-inf", or a list of
                            them. Any number of them, at any rate: they are only put aside here, and drawn at most
                            REFRESH times a second, whatever is in sight. A step read again replaces its former number
  view.state(id, state, outcome)
                            "growing" | "done" | "dead", and what done.json has, or null
  view.judge(id, diagnosis, rules)
                            what `describe` has under these names, when the verdict has changed
  view.explain(cards)       cards of probes that were not among those of `describe`
  view.ids()                the ids shown, in order
  view.close()              stops listening and drawing; the element is left empty

  Steps: the slider follows the newest step until somebody moves it away from the end.
  Several views on one document are not supported.

  Scripts are classic ones, each under an address of its own, and need no inline script:
      <link rel="stylesheet" href="page.css">
      <script src="plotly.js" defer></script> <script src="page.js" defer></script> <script src="yours.js" defer></script>
  `yours.js` calls Leadline.show. plotly may also come later than page.js: Leadline.draws(Plotly) says that it is there
  (without the call `window.Plotly` is looked for when the document has loaded).
  Other helpers a page around this one may use: Leadline.el(tag, attributes, ...children) builds elements (a string
  child becomes text), Leadline.number(value) writes a number as the page does, Leadline.theme.button() is the
  light/dark switch, Leadline.chip(state) the mark of a run's state. Colours, spaces and type are custom properties of
  page.css (--ink, --ink-2, --paper, --card, --line, --accent, --good, --warn, --bad); its classes `card`, `row`,
  `chip`, `quiet`, `number`, `button` may be used.
*/
