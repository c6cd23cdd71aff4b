"""Curves over a column of a table: a group's mean over seeds with the deviation shaded, infinite values marked."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from leadline.analysis.stats import spread
from leadline.core.table import Table
from leadline.figures.style import blank

Numbers = NDArray[np.float64]
MOST_MARKERS = 24


def panels(count: int, *, height: float = 3.0, width: float = 3.5) -> tuple[Figure, Sequence[Axes]]:
    """A figure with so many panels beside each other, each of a column's width."""
    figure = blank(width=width * count + 0.2, height=height)
    return figure, list(figure.subplots(1, count, squeeze=False)[0])


def draw(
    panel: Axes,
    table: Table,
    *,
    x: str,
    y: str,
    by: str | None = None,
    names: Mapping[Any, str] | None = None,
    log: bool = False,
    **style: Any,
) -> None:
    """One curve for each value of `by`, called by `names`, in which order they are drawn, or by the value itself.

    Points are means over the rows that share x; the band is one standard deviation, drawn where there are two rows or
    more. With `log` the axis is logarithmic and both are those of the logarithms: the mean is the geometric one.
    Where any number is infinite the point stands at the upper edge as a triangle and the legend says so.
    `style` goes to matplotlib's plot.
    """
    if log:
        panel.set_yscale("log")
    groups = list(names) if names is not None else _distinct(table[by]) if by else [None]
    for group in groups:
        rows = table.where(**{by: group}) if by else table
        if rows.height:
            label = (names or {}).get(group, "" if group is None else str(group))
            _curve(panel, rows[x].astype(float), rows[y].astype(float), log=log, style={"label": label} | style)


def _curve(panel: Axes, x: Numbers, y: Numbers, *, log: bool, style: dict[str, Any]) -> None:
    places = np.unique(x)
    middle, low, high = np.array([band(y[x == place], log=log) for place in places]).T
    infinite = np.array([bool(np.isinf(y[x == place]).any()) for place in places])
    look: dict[str, Any] = {"marker": "o" if len(places) <= MOST_MARKERS else "", "markersize": 4} | style
    shown = np.where(infinite, np.nan, middle)
    (line,) = panel.plot(places, shown, **look)
    if np.isfinite(low).any():
        panel.fill_between(places, low, high, where=~infinite, color=line.get_color(), alpha=0.2, linewidth=0)
    label = str(style["label"])
    if infinite.any():
        line.set_label(f"{label} (▲: infinite)" if label else "▲: infinite")
        top = np.full(int(infinite.sum()), 0.98)
        panel.plot(
            places[infinite],
            top,
            "^",
            color=line.get_color(),
            transform=panel.get_xaxis_transform(),
            clip_on=False,
            markersize=6,
        )


def band(values: Numbers, *, log: bool = False) -> tuple[float, float, float]:
    """Mean and one standard deviation to either side, of the logarithms with `log`, as far as there are any.

    >>> [round(end, 6) for end in band(np.array([10.0, 1000.0]), log=True)]
    [100.0, 3.852888, 2595.455352]
    """
    if log:
        with np.errstate(divide="ignore", invalid="ignore"):
            values = np.log10(values)
    found = spread(values)
    ends = (found.mean, found.mean - found.std, found.mean + found.std)
    return tuple(10**end for end in ends) if log else ends  # type: ignore[return-value]


def _distinct(values: NDArray[Any]) -> list[Any]:
    return list(dict.fromkeys(values.tolist()))
