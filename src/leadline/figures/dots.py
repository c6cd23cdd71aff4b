"""Numbers by name: a row a name, a dot a run, the mean as a bar, and numbers to compare with as open diamonds."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from leadline.core.table import Table
from leadline.figures.style import blank


def panels(count: int, *, rows: int, width: float = 3.5) -> tuple[Figure, Sequence[Axes]]:
    """So many panels beside each other that share their rows."""
    figure = blank(width=width * count + 1.2, height=1.4 + 0.36 * rows)
    return figure, list(figure.subplots(1, count, sharey=True, squeeze=False)[0])


def draw(
    panel: Axes,
    table: Table,
    *,
    y: str,
    x: str,
    colours: Mapping[str, str],
    marked: Mapping[str, float] | None = None,
    missing: str = "no number",
) -> None:
    """One row for each name in `colours` that the table or `marked` has, from top to bottom; `missing` is said of rows
    of the table that have no finite number.
    """
    marked = marked or {}
    there = set(table[y].tolist()) | set(marked)
    names = [name for name in colours if name in there]
    for row, name in enumerate(names):
        values = table.where(**{y: name})[x].astype(float)
        finite = values[np.isfinite(values)]
        if len(finite):
            panel.barh(row, finite.mean(), height=0.55, color=colours[name], alpha=0.3, linewidth=0)
            panel.plot(finite, np.full(len(finite), row), "o", color=colours[name], markersize=5, zorder=3)
        elif len(values):
            panel.annotate(missing, (0, row), (4, 0), textcoords="offset points", va="center", color=colours[name])
        if name in marked:
            panel.plot(marked[name], row, "D", color="black", markerfacecolor="none", markersize=7, zorder=4)
    panel.plot([], [], "o", color="0.4", label="ours")
    if marked:
        panel.plot([], [], "D", color="black", markerfacecolor="none", label="published")
    panel.set_yticks(range(len(names)), labels=names)
    panel.set_ylim(len(names) - 0.5, -0.5)
    panel.grid(axis="y", visible=False)
