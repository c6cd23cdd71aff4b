"""Blocks over time on a log axis: those that stand out as named lines, the others as a band with a darker middle half.

A band says of fifty blocks what fifty lines would, at any number of blocks and readings.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullLocator

from leadline.core.table import Table
from leadline.figures.style import COLOURS

TONE = "#6f97b5"
SHARES = ((0.0, 1.0, 0.3), (0.25, 0.75, 0.55))
"""Quantiles of the others that a band goes between, and how dark it is."""
WIDE = 30.0
"""The upper over the lower end from which on an axis has one label a decade."""
STYLES = (("-", COLOURS[1]), ("--", "#7a1f5c"), (":", COLOURS[6]))


def draw(panel: Axes, table: Table, *, x: str, y: str, by: str, marked: Mapping[str, str], others: str = "") -> None:
    """`by` names the block of a row; those in `marked` are lines under the name given there, the rest is the band.

    `others` is what the band is called in the legend.
    """
    panel.set_yscale("log")
    panel.axhline(1.0, color="#555555", linewidth=0.7, zorder=1)
    blocks = set(table[by].tolist())
    for place, (block, name) in enumerate(marked.items()):
        if block in blocks:
            line, colour = STYLES[place % len(STYLES)]
            rows = table.where(**{by: block}).sort(x)
            panel.plot(rows[x], rows[y], line, color=colour, linewidth=1.6, zorder=3, label=name)
    rest = table.select(np.array([block not in marked for block in table[by].tolist()], dtype=bool))
    rest = rest.select(np.isfinite(rest[y]) & (rest[y] > 0)) if rest.height else rest
    places = sorted(set(rest[x].tolist())) if rest.height else []
    for low, high, alpha in SHARES:
        ends = np.array([np.quantile(rest.where(**{x: place})[y], (low, high)) for place in places]).reshape(-1, 2)
        label = others if low == 0 else ""
        panel.fill_between(places, *ends.T, color=TONE, alpha=alpha, linewidth=0, zorder=2, label=label)
    share_scale([panel])


def share_scale(panels: Sequence[Axes]) -> None:
    """One range of all these panels, with the same labels: 1, 2, 5, or one a decade where it is wide."""
    ends = [panel.get_ylim() for panel in panels]
    low, high = min(end[0] for end in ends), max(end[1] for end in ends)
    for panel in panels:
        panel.set_ylim(low, high)
        panel.yaxis.set_major_locator(LogLocator(subs=(1,) if high > WIDE * low else (1, 2, 5)))
        panel.yaxis.set_major_formatter("{x:g}")
        panel.yaxis.set_minor_locator(NullLocator())
