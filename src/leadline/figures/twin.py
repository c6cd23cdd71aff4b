"""Two quantities over one axis: one in black on the left, one in blue on the right; solid and dotted lines each."""

from collections.abc import Mapping

from matplotlib.artist import Artist
from matplotlib.axes import Axes

from leadline.core.table import Table
from leadline.figures.style import COLOURS

TONES = ("#222222", COLOURS[0])
LINES = ("-", ":")


def draw(panel: Axes, table: Table, *, x: str, left: Mapping[str, str], right: Mapping[str, str]) -> Axes:
    """`left` and `right` name columns and what they are called, solid ones first; returns the axes on the right."""
    other = panel.twinx()
    other.grid(visible=False)
    other.spines["right"].set_visible(True)
    rows = table.sort(x)
    for axes, columns, tone in ((panel, left, TONES[0]), (other, right, TONES[1])):
        axes.tick_params(axis="y", colors=tone)
        for line, (column, name) in zip(LINES, columns.items(), strict=False):
            axes.plot(rows[x], rows[column], line, color=tone, linewidth=1.5, label=name)
    return other


def label(left_axes: Axes, right_axes: Axes, *, left: str, right: str) -> None:
    """Names the two sides; without a name a side has no tick labels either."""
    for axes, name, tone in ((left_axes, left, TONES[0]), (right_axes, right, TONES[1])):
        axes.set_ylabel(name, color=tone)
        if not name:
            axes.tick_params(axis="y", which="both", labelleft=False, labelright=False)


def legend(panel: Axes) -> tuple[list[Artist], list[str]]:
    """Handles and names of both sides of a panel."""
    pairs = [each.get_legend_handles_labels() for each in panel.figure.axes if each.bbox.bounds == panel.bbox.bounds]
    return [handle for handles, _ in pairs for handle in handles], [name for _, names in pairs for name in names]
