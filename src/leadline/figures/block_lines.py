"""One line for every block over time, on log axes: blocks that stand out are dark and named, the others light."""

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter

from leadline.core.table import Table
from leadline.figures.style import COLOURS

LIGHT = "#9db7cc"
STYLES = (("-", COLOURS[1]), ("--", "#7a1f5c"), (":", COLOURS[6]))


def draw(panel: Axes, table: Table, *, x: str, y: str, by: str, marked: Mapping[str, str], others: str = "") -> None:
    """`by` names the block of a row; those in `marked` are drawn on top of the others, under the name given there.

    `others` is what the others are called in the legend.
    """
    panel.set_yscale("log")
    panel.yaxis.set_major_formatter("{x:g}")
    panel.yaxis.set_minor_formatter(NullFormatter())
    panel.axhline(1.0, color="#555555", linewidth=0.7, zorder=1)
    blocks = list(dict.fromkeys(table[by].tolist()))
    for place, (block, name) in enumerate(marked.items()):
        if block in blocks:
            line, colour = STYLES[place % len(STYLES)]
            rows = table.where(**{by: block}).sort(x)
            panel.plot(rows[x], rows[y], line, color=colour, linewidth=1.6, zorder=3, label=name)
    for place, block in enumerate(name for name in blocks if name not in marked):
        rows = table.where(**{by: block}).sort(x)
        label = "" if place else others
        panel.plot(rows[x], rows[y], color=LIGHT, linewidth=0.8, alpha=0.7, zorder=2, label=label)
