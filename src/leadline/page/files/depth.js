/* Where readings lie along the depth of a network, on one axis counted in blocks, and what lies at a place. */
"use strict";
(function (L) {
  /** Whether the readings of a probe are counted along blocks, boundaries or layers. */
  function axis(run, probe, places) {
    const said = (run.probes[probe] || {}).axis;
    const fits = (name) => run.axes[name] && run.axes[name].names.length === places;
    return fits(said) ? said : ["block", "boundary", "layer"].find(fits) || said || "block";
  }

  /** Names and positions of the places of a course; counted through where the run does not say what they are. */
  function along(run, course) {
    const name = axis(run, course.probe, course.places), known = run.axes[name];
    if (known && known.names.length === course.places) return { axis: name, names: known.names, at: known.at };
    return { axis: name, names: [], at: Array.from({ length: course.places }, (_, k) => k + 1) };
  }

  const blocks = (run) => run.anatomy.blocks || [];
  const count = (run) => Math.max(1, blocks(run).length, (run.axes.block || { names: [] }).names.length);

  /** The number, from 0, of the block at a position; -1 before the first and behind the last. */
  function blockAt(run, position) {
    const number = Math.round(position) - 1;
    return number >= 0 && number < blocks(run).length && Math.abs(position - number - 1) <= 0.5 ? number : -1;
  }

  const transitions = (run) => blocks(run).flatMap((block, k) => (block.transition ? [k + 1] : []));

  /** The index of the place nearest to a position. */
  function nearest(at, position) {
    let best = 0;
    for (let k = 1; k < at.length; k++) if (Math.abs(at[k] - position) < Math.abs(at[best] - position)) best = k;
    return best;
  }

  /** What to say of a place: its name, and of its block the kind, shortcut and shapes. */
  function words(run, where, index) {
    const position = where.at[index], number = blockAt(run, where.axis === "boundary" ? position - 0.5 : position);
    const block = blocks(run)[number];
    const head = where.names[index] || L.place(where.axis, index);
    const lines = [];
    if (where.axis === "boundary") lines.push(index === 0 ? "the input of the first block" : `the output of ${block ? block.name : L.place("block", index - 1)}`);
    else if (where.axis === "layer") lines.push(block ? `in block ${number + 1}, ${block.name}` : position < 1 ? "before the first block" : position > count(run) ? "behind the last block" : "between two blocks");
    if (block) {
      lines.push(`${where.axis === "block" ? `block ${number + 1} of ${count(run)}: ` : ""}${L.kind(block)}`);
      lines.push(`${L.shape(block.in)} → ${L.shape(block.out)}`);
    }
    return { head, lines };
  }

  L.depth = { axis, along, blocks, count, blockAt, transitions, nearest, words };
})(window.Leadline);
