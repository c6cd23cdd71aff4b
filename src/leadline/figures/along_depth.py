"""Positive numbers along the depth of networks, one curve a network; infinite ones as bars on a strip of their own."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from leadline.core.table import Table
from leadline.figures.series import band
from leadline.figures.style import blank

Numbers = NDArray[np.float64]
FAINT: dict[str, Any] = {"linewidth": 1.0, "linestyle": (0, (1, 1.5)), "alpha": 0.9}


class Pair(NamedTuple):
    """A panel and above it the strip, a row a network, that says where numbers are infinite."""

    strip: Axes
    panel: Axes


def pairs(rows: int, columns: int, *, width: float = 3.7, height: float = 3.0) -> tuple[Figure, list[list[Pair]]]:
    """Rows and columns of panels, each with its strip, that share their axes."""
    figure = blank(width=max(width * columns + 0.4, 5.4), height=height * rows + 0.4)
    axes = figure.subplots(2 * rows, columns, squeeze=False, sharex=True, height_ratios=[1, 4.5] * rows)
    for panel in axes[1::2].flat[1:]:
        panel.sharey(axes[1, 0])
    return figure, [[Pair(*axes[2 * row : 2 * row + 2, column]) for column in range(columns)] for row in range(rows)]


def draw(
    pair: Pair, table: Table, *, x: str, y: str, by: str, colours: Mapping[str, str], faint: Table | None = None
) -> None:
    """One curve for each name in `colours` that the column `by` has: the geometric mean over rows that share x, with
    one standard deviation of the logarithms. Where a row is infinite the strip has a bar. `faint` is drawn dotted, and
    as a thin bar.
    """
    strip, panel = pair
    panel.set_yscale("log")
    for row, (name, colour) in enumerate(colours.items()):
        strip.axhline(row, color="0.9", linewidth=0.8, zorder=0)
        for part, style, place, width in ((faint, FAINT, row + 0.35, 1.0), (table, {}, row, 3.0)):
            rows = Table() if part is None else part.where(**{by: name})
            if rows.height:
                _curve(panel, rows, x, y, {"color": colour, **style})
                for ends in stretches(rows[x].astype(float), np.isinf(rows[y].astype(float))):
                    strip.plot(ends, [place, place], color=colour, linewidth=width, marker="s", markersize=width - 0.8)
    strip.set(ylim=(len(colours) - 0.25, -0.6))
    strip.set_yticks([(len(colours) - 1) / 2], labels=["infinite"])
    strip.tick_params(length=0, labelbottom=False)
    strip.grid(visible=False)
    strip.spines["bottom"].set_visible(False)
    strip.spines["left"].set_visible(False)


def _curve(panel: Axes, rows: Table, x: str, y: str, style: dict[str, Any]) -> None:
    at, values = rows[x].astype(float), rows[y].astype(float)
    places = np.unique(at)
    found = [values[at == place] for place in places]
    middle, low, high = np.array([band(each[np.isfinite(each)], log=True) for each in found]).T
    shown = np.where([bool(np.isinf(each).any()) for each in found], np.nan, middle)
    panel.plot(places, shown, **{"linewidth": 1.5, **style})
    if (alone := isolated(shown)).any():
        panel.plot(places[alone], shown[alone], linestyle="", marker=".", markersize=5, color=style["color"])
    if np.isfinite(low).any():
        panel.fill_between(places, low, high, color=style["color"], alpha=0.2, linewidth=0)


def isolated(values: Numbers) -> NDArray[np.bool_]:
    """Which numbers have no number beside them, so that a line does not show them.

    >>> isolated(np.array([1.0, np.nan, 2.0, 3.0])).tolist()
    [True, False, False, False]
    """
    known = np.pad(np.isfinite(values), 1)
    return np.asarray(known[1:-1] & ~known[:-2] & ~known[2:])


def stretches(x: Numbers, marked: NDArray[np.bool_]) -> list[tuple[float, float]]:
    """First and last of the places in a row, of all there are, at which any is marked.

    >>> stretches(np.array([1.0, 2.0, 3.0, 5.0]), np.array([True, True, False, True]))
    [(1.0, 2.0), (5.0, 5.0)]
    """
    places = np.unique(x)
    flags = [bool(marked[x == place].any()) for place in places]
    found: list[tuple[float, float]] = []
    for k, place in enumerate(places.tolist()):
        if flags[k]:
            found.append((found.pop()[0] if k and flags[k - 1] else place, place))
    return found


def legend(figure: Figure, colours: Mapping[str, str], *, notes: Mapping[str, str], faint: str = "") -> None:
    """Below the panels what the colours mean, each with its note, and what the dotted curves are."""
    handles: Sequence[Line2D] = [
        Line2D([], [], color=colour, linewidth=2, label=f"{name} ({notes[name]})" if notes.get(name) else name)
        for name, colour in colours.items()
    ]
    dotted = [Line2D([], [], color="0.3", label=faint, **FAINT)] * bool(faint)
    figure.legend(handles=[*handles, *dotted], loc="outside lower center", ncols=3)
