"""Figs 4 to 6 of Oyedotun et al.: activations, weights and gradients of an early and a late layer while training.

The paper looks at layers 1 and 108 of 110: the first one and the last but two.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.analysis.claims import Test
from leadline.analysis.stats import seeds
from leadline.analysis.verdict import Verdict, judge
from leadline.core.table import Table
from leadline.recipes import Made
from leadline.recipes._oyedotun2021 import COLOURS, COMPARED, depth_of, keys, place
from leadline.recipes._oyedotun2021_depth import weight_layers

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOW, MIDDLE, HIGH = ("least", "p01", "p25"), "p50", ("p75", "p99", "largest")
READINGS = {"least": "min", "largest": "max"}
"""What columns of the table are called among the readings, where that is something else."""
COLUMNS = ("net", "data", "depth", "seed", "outcome", "place", "layer", "part", "step", *LOW, MIDDLE, *HIGH)
WAY, WHOLE = "on the way", "widest"
EARLY, LATE = "early", "late"
Ranges = Mapping[tuple[str, str], tuple[float, float]]
"""Published ends of ranges by network of the paper and layer."""


def layer_number(layer: str, depth: int) -> int:
    return 1 if layer == EARLY else depth - 2


def table(made: Sequence[Made], probe: str) -> Table:
    """Rows on the way, one for each reading, and one with the widest range of the training."""
    parts = [_of_run(one, probe, layer) for one in made for layer in (EARLY, LATE)]
    return Table.concat([part for part in parts if part.height] or [Table.from_rows([], COLUMNS)])


def _of_run(one: Made, probe: str, layer: str) -> Table:
    number = weight_layers(one.run.record["places"]).index(layer_number(layer, depth_of(one)))
    readings = one.run.readings.where(probe=probe, block=number)
    found = {name: readings.where(name=READINGS.get(name, name)) for name in (*LOW, MIDDLE, *HIGH)}
    steps = found[MIDDLE]["step"].tolist()
    columns = {name: rows["value"].astype(float) for name, rows in found.items()}
    rows: list[dict[str, Any]] = [
        {name: float(values[k]) for name, values in columns.items()} | {"part": WAY, "step": step}
        for k, step in enumerate(steps)
    ]
    reach = np.maximum(-columns["least"], columns["largest"])
    if np.isfinite(reach).any():
        widest = {name: _pick(name, values) for name, values in columns.items()}
        rows.append(widest | {"part": WHOLE, "step": steps[int(np.nanargmax(reach))]})
    key = keys(one) | {"outcome": one.outcome.get("outcome", ""), "place": place(one), "layer": layer}
    return Table.from_rows([key | row for row in rows], COLUMNS)


def _pick(name: str, values: Any) -> float:
    """The least of the low ends, the largest of the high ones, the middle of the middles; nan without any."""
    known = values[np.isfinite(values)]
    pick = np.min if name in LOW else np.max if name in HIGH else np.median
    return float(pick(known)) if len(known) else float("nan")


def published(ranges: Ranges, source: str, *, ends: tuple[str, str] = ("least", "largest")) -> Table:
    """The paper's ends of ranges over the whole training; those of its PlainNet stand beside both of ours."""
    rows = [
        {"net": net, "layer": layer, "part": WHOLE, "quantity": end, "value": value, "source": source}
        for net in COMPARED
        for (paper, layer), pair in ranges.items()
        if paper == net.removesuffix(", no norm")
        for end, value in zip(ends, pair, strict=True)
        if np.isfinite(value)
    ]
    return Table.from_rows(rows)


def figure(table: Table, ranges: Ranges, title: str, ylabel: str) -> "Figure":
    """A column for each network, a row for each layer; dashed lines are the ends that the paper gives."""
    from leadline.figures import fans
    from leadline.figures.style import blank, styled

    marked = {layer: [e for (_, at), pair in ranges.items() if at == layer for e in pair] for layer in (EARLY, LATE)}
    first = table.where(seed=0, part=WAY, place=table["place"][0])
    with styled():
        drawn = blank(width=1.0 + 2.1 * len(COMPARED), height=5.2)
        grid = drawn.subplots(2, len(COMPARED), sharex=True, sharey="row")
        for line, layer in zip(grid, (EARLY, LATE), strict=True):
            shown = [first.where(net=net, layer=layer) for net in COMPARED]
            for panel, net, rows in zip(line, COMPARED, shown, strict=True):
                ends = ranges.get((net.removesuffix(", no norm"), layer), ())
                if rows.height:
                    fans.draw(panel, rows, x="step", colour=COLOURS[net], marked=[e for e in ends if np.isfinite(e)])
            fans.share_scale(line, shown, marked=marked[layer])
            line[0].set_ylabel(f"{ylabel}, layer {layer_number(layer, int(table['depth'][0]))}")
        for panel, net in zip(grid[0], COMPARED, strict=True):
            panel.set_title(net, fontsize="medium")
        for panel in grid[1]:
            panel.set_xlabel("step")
        fans.legend(drawn, marked="published" if ranges else "")
        drawn.suptitle(f"{title}: {table['place'][0]}", x=0.01, ha="left", fontsize="medium")
    return drawn


def widest(table: Table, net: str, layer: str, *, inner: bool = False) -> tuple[float, float, str, int]:
    """The ends of the widest range over all runs, with `inner` without the outer hundredths; words on it; seeds."""
    rows = table.where(net=net, layer=layer, part=WHOLE)
    names = ("p01", "p99") if inner else ("least", "largest")
    low, high = (_pick(name, rows[name].astype(float)) if rows.height else float("nan") for name in names)
    lost = rows.height > 0 and "diverged" in rows["outcome"].tolist()
    said = f"{net} {low:.3g} to {high:.3g}" + f", widest at step {rows['step'][0]}" * (rows.height == 1)
    return low, high, said + "; it diverged" * lost, seeds(rows)


def reaches(net: str, layer: str, bound: float, *, inner: bool = False) -> Test:
    """That absolute values go up to `bound` at some time; with `inner`, more than a hundredth of them."""

    def test(table: Table) -> Verdict:
        low, high, note, count = widest(table, net, layer, inner=inner)
        return judge(max(-low, high) >= bound, max(-low, high), seeds=count, note=note)

    return test


def within(nets: Sequence[str], layer: str, bound: float, *, inner: bool = False) -> Test:
    """That absolute values of no network go beyond `bound`; with `inner`, but for a hundredth at either end."""

    def test(table: Table) -> Verdict:
        found = [widest(table, net, layer, inner=inner) for net in nets]
        reach = float(np.max([max(-low, high) for low, high, *_ in found]))
        notes, counts = ([each[k] for each in found] for k in (2, 3))
        return judge(reach <= bound, reach, seeds=min(map(int, counts)), note="; ".join(map(str, notes)))

    return test


def collapses(net: str, layer: str, factor: float) -> Test:
    """That the inner half of the values ends `factor` times narrower than it began, in every run."""

    def test(table: Table) -> Verdict:
        rows = table.where(net=net, layer=layer, part=WAY)
        ratios = []
        for seed in sorted(set(rows["seed"].tolist())) if rows.height else []:
            run = rows.where(seed=seed).sort("step")
            wide = (run["p75"] - run["p25"]).astype(float)
            ratios.append(float(wide[0] / wide[-1]) if wide[-1] else float("inf"))
        measured = min(ratios, default=float("nan"))
        note = "width of the inner half of the weights, first over last"
        return judge(measured >= factor, measured, seeds=seeds(rows), note=note)

    return test
