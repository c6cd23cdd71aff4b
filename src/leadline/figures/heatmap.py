"""A number for every pair of two sizes: coloured by its distance from one on a log scale, and written in its cell."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from leadline.analysis.stats import mean_of
from leadline.core.table import Table
from leadline.figures.style import blank

COLOURS = "PuOr"
DARK = 0.75
"""The part of the range beyond which a cell is so dark that its number is written in white."""


def panels(count: int, *, cells: int) -> tuple[Figure, Sequence[Axes]]:
    """So many square panels of `cells` x `cells` beside each other."""
    side = 1.0 + 0.48 * cells
    figure = blank(width=side * count + 0.9, height=side + 0.2)
    return figure, list(figure.subplots(1, count, sharey=True, squeeze=False)[0])


def draw(panel: Axes, table: Table, *, x: str, y: str, value: str, reach: float) -> ScalarMappable:
    """Means over rows that share x and y; colours go from 1 / `reach` to `reach`. Returns what a colour bar shows."""
    columns, rows = (sorted(set(table[name].tolist())) for name in (x, y))
    grid = np.array([[mean_of(table, value, **{x: column, y: row}) for column in columns] for row in rows])
    norm = LogNorm(1 / reach, reach)
    shown = panel.imshow(np.clip(grid, 1 / reach, reach), cmap=COLOURS, norm=norm, origin="lower", aspect="equal")
    for (row, column), number in np.ndenumerate(grid):
        far = abs(np.log(number)) / np.log(reach) if np.isfinite(number) and number > 0 else 0.0
        said = f"{number:.2g}" if np.isfinite(number) else "–"
        colour = "white" if far > DARK else "black"
        panel.text(column, row, said, ha="center", va="center", fontsize="small", color=colour)
    panel.set_xticks(range(len(columns)), labels=map(str, columns))
    panel.set_yticks(range(len(rows)), labels=map(str, rows))
    panel.grid(visible=False)
    panel.tick_params(length=0)
    return shown
