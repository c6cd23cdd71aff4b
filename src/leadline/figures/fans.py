"""Ranges over time: the extremes, inner percentiles and median of many values, shaded the darker the nearer."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import NullLocator

from leadline.core.table import Table

BANDS = (("least", "largest", 0.15), ("p01", "p99", 0.25), ("p25", "p75", 0.4))
MIDDLE = "p50"
MOST_TICKS = 4
DASHED: dict[str, Any] = {"linestyle": (0, (4, 3)), "linewidth": 0.9}
COLUMNS = (*(name for low, high, _ in BANDS for name in (low, high)), MIDDLE)


def draw(panel: Axes, table: Table, *, x: str, colour: str, marked: Sequence[float] = ()) -> None:
    """The bands of a table with the columns of COLUMNS, a row a place in time; dashed lines at what is `marked`."""
    rows = table.sort(x)
    at = rows[x].astype(float)
    for low, high, alpha in BANDS:
        ends = rows[low].astype(float), rows[high].astype(float)
        panel.fill_between(at, *ends, color=colour, alpha=alpha, linewidth=0)
    panel.plot(at, rows[MIDDLE], color=colour, linewidth=1.4)
    for value in marked:
        panel.axhline(value, color="black", **DASHED)


def share_scale(panels: Iterable[Axes], tables: Iterable[Table], *, marked: Iterable[float] = ()) -> None:
    """One axis for panels beside each other: linear as far as the narrowest reaches, logarithmic beyond."""
    reaches = [reach for table in tables if (reach := widest(table)) > 0]
    if reaches:
        wide = max(*reaches, *(abs(value) for value in marked if math.isfinite(value)), min(reaches))
        for panel in panels:
            panel.set_yscale("symlog", linthresh=min(reaches), linscale=1.0)
            panel.set_yticks(ticks(min(reaches), wide))
            panel.yaxis.set_minor_locator(NullLocator())


def ticks(narrow: float, wide: float) -> list[float]:
    """Zero and to both sides powers of ten beyond the linear part, at most MOST_TICKS of them.

    >>> ticks(7.0, 1e6)
    [-1000000.0, -10000.0, -100.0, 0.0, 100.0, 10000.0, 1000000.0]
    """
    last = math.floor(math.log10(wide))
    first = min(math.ceil(math.log10(narrow)), last)
    stride = -(-(last - first + 1) // MOST_TICKS)
    powers = [10.0**k for k in range(last, first - 1, -stride)]
    return [*(-power for power in powers), 0.0, *powers[::-1]]


def legend(figure: Figure, *, marked: str = "") -> None:
    """Below the panels what the shades are, and what the dashed lines are."""
    names = ("all values", "98% of them", "half of them")
    shades = [Patch(color="0.3", alpha=alpha, label=name) for name, (*_, alpha) in zip(names, BANDS, strict=True)]
    dashed = [Line2D([], [], color="black", label=marked, **DASHED)] * bool(marked)
    figure.legend(handles=[*shades, *dashed], loc="outside lower center", ncols=4)


def widest(table: Table) -> float:
    """The largest absolute value that a table of ranges has; zero if it has none."""
    values = np.abs(np.concatenate([table["least"].astype(float), table["largest"].astype(float)]))
    return float(values[np.isfinite(values)].max(initial=0.0))
