"""Final losses at the best learning rate, as in Figs 7 and 8 of Li et al.: the rate is that of the least mean."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leadline.core.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = ("seed", "loss", "excess", "rate", "spread")
BASICALLY_THE_SAME = 1.1
"""Losses that differ by at most this factor over the rates: no rate is then the best one."""
LINES = ("-", (0, (5, 3)), (0, (1.5, 2)), (3, (5, 3, 1.5, 3)), (0, (8, 6)))
Numbers = NDArray[np.float64]


def at_best(losses: Numbers, rates: Sequence[float], *, optimum: float = 0.0) -> Iterator[dict[str, Any]]:
    """A row for each start of losses (starts, rates): its loss at the rate with the least mean, and above `optimum`.

    A rate at which any start has come to no number is not taken. `spread` is the largest mean over the least.

    >>> next(at_best(np.array([[2.0, 1.0, np.nan]]), [0.1, 1.0, 10.0], optimum=0.5))
    {'seed': 0, 'loss': 1.0, 'excess': 0.5, 'rate': 1.0, 'spread': 2.0}
    """
    means = np.where(np.isfinite(losses).all(0), losses.mean(0), np.inf)
    best = int(means.argmin())
    known = means[np.isfinite(means)]
    spread = float(known.max() / known.min()) if len(known) else float("nan")
    rate = float(rates[best]) if len(known) else float("nan")
    for seed, loss in enumerate(losses[:, best].tolist()):
        # rounding can take a loss below the least one there is
        excess = max(loss - optimum, np.finfo(np.float64).eps * optimum)
        yield {"seed": seed, "loss": loss, "excess": excess, "rate": rate, "spread": spread}


def deepest(table: Table) -> Table:
    """The rows of the largest depth."""
    return table.where(depth=int(table["depth"].max())) if table.height else table


def draw_best(table: Table, *, y: str, ylabel: str, nets: Mapping[str, str]) -> "Figure":
    """The losses on the left, the rates on the right but where all are as good."""
    from leadline.figures import series
    from leadline.figures.style import COLOURS, styled

    depths = sorted(set(table["depth"].tolist()))
    told = table.select(table["spread"] > BASICALLY_THE_SAME)
    with styled():
        drawn, (left, right) = series.panels(2, width=3.7, height=3.4)
        series.draw(left, table, x="depth", y=y, by="net", names=nets, log=True)
        # nets often share a rate: with a line style each, none of them hides another
        for net, colour, line in zip(nets, COLOURS, itertools.cycle(LINES), strict=False):
            style = {"color": colour, "linestyle": line, "marker": "o" if line == LINES[0] else ""}
            series.draw(right, told, x="depth", y="rate", by="net", names={net: nets[net]}, log=True, **style)
        left.set(title="final loss at the best rate", ylabel=ylabel)
        right.set(title="best learning rate", ylabel="learning rate")
        for panel in (left, right):
            panel.set_xscale("log", base=2)
            panel.set_xticks(depths, labels=map(str, depths))
            panel.set(xlabel="depth", xlim=(depths[0] / 1.15, depths[-1] * 1.15))
            panel.xaxis.minorticks_off()
        handles, labels = left.get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside lower center", ncols=min(5, len(labels)))
    return drawn
