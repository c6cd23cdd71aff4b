"""Ranges over time: the extremes, inner percentiles and median of many values, shaded the darker the nearer."""

import math
from collections.abc import Iterable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from leadline.core.table import Table

BANDS = (("least", "largest", 0.15), ("p01", "p99", 0.25), ("p25", "p75", 0.4))
MIDDLE = "p50"
MOST_TICKS = 4
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
        panel.axhline(value, color="black", linestyle=(0, (4, 3)), linewidth=0.9)


def share_scale(panels: Iterable[Axes], tables: Iterable[Table]) -> None:
    """One axis for panels beside each other: linear as far as the narrowest reaches, logarithmic beyond."""
    reaches = [reach for table in tables if (reach := widest(table)) > 0]
    if reaches:
        for panel in panels:
            panel.set_yscale("symlog", linthresh=min(reaches), linscale=1.0)
            panel.set_yticks(ticks(min(reaches), max(reaches)))
            panel.yaxis.set_minor_locator(NullLocator())


def ticks(narrow: float, wide: float) -> list[float]:
    """Zero and to both sides powers of ten from the end of the linear part on, at most MOST_TICKS of them.

    >>> ticks(7.0, 1e6)
    [-1000000.0, -10000.0, -100.0, 0.0, 100.0, 10000.0, 1000000.0]
    """
    first, last = math.floor(math.log10(narrow)), math.floor(math.log10(wide))
    stride = -(-(last - first + 1) // MOST_TICKS)
    powers = [10.0**k for k in range(last, first - 1, -stride)]
    return [-power for power in powers] + [0.0] + powers[::-1]


def widest(table: Table) -> float:
    """The largest absolute value that a table of ranges has; zero if it has none."""
    values = np.abs(np.concatenate([table["least"].astype(float), table["largest"].astype(float)]))
    return float(values[np.isfinite(values)].max(initial=0.0))
