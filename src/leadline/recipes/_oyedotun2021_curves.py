"""Figs 2 and 3 of Oyedotun et al.: losses and accuracies of the networks while they train."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.analysis.claims import Claim, Test
from leadline.analysis.stats import mean_of, seeds
from leadline.analysis.verdict import Verdict, judge, undecided
from leadline.core.table import Table
from leadline.recipes import Made
from leadline.recipes._oyedotun2021 import CLASSES, COLOURS, COMPARED, PLAIN, SKIPPING, keys, place

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Curve = tuple[str, list[int], list[float]]
"""A name, steps and values."""
COLUMNS = ("net", "data", "depth", "seed", "outcome", "place", "step", "curve", "value")
LINES = {net: "--" if net.endswith("no norm") else "-" for net in COMPARED}
WINDOWS = 60
"""A training loss shown is the mean over one of so many equal parts of the steps."""
EXTREME = 10.0
"""Losses so many times that of guessing, ln C, are `extremely high`."""


def training(made: Sequence[Made]) -> Table:
    """Mean losses of equal parts of the training, and accuracies on training data in percent."""
    return _table(made, lambda one: [("loss", *_means(one)), ("accuracy", *_kept(one, "error/train", 100, -1))])


def testing(made: Sequence[Made]) -> Table:
    """Losses and accuracies, in percent, on all test data."""
    return _table(
        made,
        lambda one: [("loss", *_kept(one, "test/loss", 0, 1)), ("accuracy", *_kept(one, "test/accuracy", 0, 100))],
    )


def _table(made: Sequence[Made], curves: Callable[[Made], list[Curve]]) -> Table:
    rows = [
        keys(one)
        | {"outcome": one.outcome.get("outcome", ""), "place": place(one)}
        | {"curve": curve, "step": step, "value": value}
        for one in made
        for curve, steps, values in curves(one)
        for step, value in zip(steps, values, strict=True)
    ]
    return Table.from_rows(rows, COLUMNS)


def _means(one: Made) -> tuple[list[int], list[float]]:
    steps, losses = one.curve("train/loss")
    if not len(steps):
        return [], []
    size = max(1, math.ceil((steps[-1] + 1) / WINDOWS))
    parts = [(steps // size == part) & np.isfinite(losses) for part in range(steps[-1] // size + 1)]
    parts = [part for part in parts if part.any()]
    return [int(steps[part][-1]) for part in parts], [float(losses[part].mean()) for part in parts]


def _kept(one: Made, name: str, offset: float, factor: float) -> tuple[list[int], list[float]]:
    steps, values = one.curve(name)
    return steps.tolist(), (offset + factor * values).tolist()


def figure(table: Table, title: str, words: str) -> "Figure":
    """Loss on a log axis and accuracy, a curve a network; a cross ends a training that diverged."""
    from matplotlib.ticker import LogLocator, NullFormatter

    from leadline.figures import series
    from leadline.figures.style import styled

    with styled():
        drawn, panels = series.panels(2, height=3.4)
        for panel, curve in zip(panels, ("loss", "accuracy"), strict=True):
            for net in COMPARED:
                rows = table.where(net=net, curve=curve)
                if rows.height:
                    look: dict[str, Any] = {"color": COLOURS[net], "linestyle": LINES[net], "marker": ""}
                    series.draw(panel, rows, x="step", y="value", log=curve == "loss", **look)
                    _ends(panel, rows.where(outcome="diverged"), COLOURS[net])
            panel.set(xlabel="step", ylabel=f"{words} {curve}" + ", %" * (curve == "accuracy"))
        panels[0].yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        panels[0].yaxis.set_major_formatter("{x:g}")
        panels[0].yaxis.set_minor_formatter(NullFormatter())
        panels[1].set_ylim(-3, 103)
        for net in COMPARED:
            panels[1].plot([], [], color=COLOURS[net], linestyle=LINES[net], label=net)
        if "diverged" in table["outcome"].tolist():
            panels[1].plot([], [], "x", color="0.3", label="diverged")
        drawn.legend(*panels[1].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        places = " and ".join(dict.fromkeys(table["place"].tolist()))
        drawn.suptitle(f"{title}: {places}", x=0.01, ha="left", fontsize="medium")
    return drawn


def _ends(panel: Any, rows: Table, colour: str) -> None:
    """The last number of every run."""
    for seed in sorted(set(rows["seed"].tolist())):
        run = rows.where(seed=seed).sort("step")
        panel.plot(run["step"][-1], run["value"][-1], "x", color=colour, markersize=7, markeredgewidth=2)


def claims(where: str, words: str) -> Iterator[Claim]:
    for net, kind in zip(PLAIN, ("with batch norm", "without batch norm"), strict=True):
        yield Claim(
            where=where,
            text=f"the {words} loss of the plain network {kind} is extremely large",
            test=extreme(net),
            published="drawn on a log scale `due to extremely high values`",
            since="laptop",
        )
        yield Claim(
            where=where,
            text=f"the {words} accuracy of the plain network {kind} ends below those of ResNet and ResNeXt",
            test=poor(net),
            published="poor",
            since="laptop",
        )
    for net in SKIPPING:
        yield Claim(
            where=where,
            text=f"the {words} loss of {net} ends below that of guessing",
            test=learns(net),
            published="trained successfully",
            since="laptop",
        )
        yield Claim(
            where=where,
            text=f"the {words} loss of {net} ends at half of where it began, or below",
            test=halves(net),
            published="trained successfully",
            since="laptop",
        )


def guessing(rows: Table) -> float:
    """The loss ln C of guessing among C classes."""
    return math.log(CLASSES.get(str(rows["data"][0]), 10))


def extreme(net: str) -> Test:
    """By the largest loss on the way, over that of guessing."""

    def test(table: Table) -> Verdict:
        rows = table.where(net=net, curve="loss")
        known = rows.select(np.isfinite(rows["value"].astype(float)))
        if not known.height:
            return undecided(f"{net} has no finite loss")
        guess = guessing(known)
        highest = float(known["value"].astype(float).max())
        said = f"at most {highest:.4g}, guessing has {guess:.3g}" + _diverged(rows)
        return judge(highest >= EXTREME * guess, highest, seeds=seeds(rows), note=said)

    return test


def poor(net: str) -> Test:
    def test(table: Table) -> Verdict:
        ends = {each: mean_of(last(table, each, "accuracy"), "value") for each in (net, *SKIPPING)}
        gap = min(ends[each] for each in SKIPPING) - ends[net]
        note = ", ".join(f"{each} {value:.3g}%" for each, value in ends.items())
        return judge(gap > 0, gap, seeds=seeds(table), note=note + _diverged(table.where(net=net)))

    return test


def learns(net: str) -> Test:
    def test(table: Table) -> Verdict:
        rows = last(table, net, "loss")
        if not rows.height:
            return undecided(f"{net} has no loss")
        final, guess = mean_of(rows, "value"), guessing(rows)
        return judge(final < guess, final, seeds=seeds(rows), note=f"guessing has {guess:.3g}" + _diverged(rows))

    return test


def halves(net: str) -> Test:
    """By the first reading of the curve, which on test data is that after the first evaluation."""

    def test(table: Table) -> Verdict:
        rows, ended = table.where(net=net, curve="loss"), last(table, net, "loss")
        if not ended.height:
            return undecided(f"{net} has no loss")
        first = rows.select(rows["step"] == min(rows["step"].tolist()))
        ratio = mean_of(ended, "value") / mean_of(first, "value")
        return judge(ratio <= 0.5, ratio, seeds=seeds(ended), note="last over first" + _diverged(ended))

    return test


def last(table: Table, net: str, curve: str) -> Table:
    """The last number of every run."""
    rows = table.where(net=net, curve=curve)
    runs = [rows.where(seed=seed).sort("step") for seed in sorted(set(rows["seed"].tolist()))]
    return Table.concat([run.select(np.array([-1])) for run in runs] or [rows])


def _diverged(rows: Table) -> str:
    lost = set(rows.where(outcome="diverged")["seed"].tolist())
    return f"; {len(lost)} of {seeds(rows)} diverged" if lost else ""
