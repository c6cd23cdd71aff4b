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
    marker: str = "o",
) -> None:
    """One curve for each value of `by`, called by `names`, in which order they are drawn, or by the value itself.

    Points are means over the rows that share x; the band is one standard deviation, drawn where there are two rows or
    more. Where any number is infinite the point stands at the upper edge as a triangle and the legend says so.
    """
    groups = list(names) if names is not None else _distinct(table[by]) if by else [None]
    for group in groups:
        rows = table.where(**{by: group}) if by else table
        if rows.height:
            label = (names or {}).get(group, "" if group is None else str(group))
            _curve(panel, rows[x].astype(float), rows[y].astype(float), label=label, marker=marker)


def _curve(panel: Axes, x: Numbers, y: Numbers, *, label: str, marker: str) -> None:
    places = np.unique(x)
    found = [spread(y[x == place]) for place in places]
    means, stds = np.array([each.mean for each in found]), np.array([each.std for each in found])
    infinite = np.array([bool(np.isinf(y[x == place]).any()) for place in places])
    shown = np.where(infinite, np.nan, means)
    style = marker if len(places) <= 24 else ""
    (line,) = panel.plot(places, shown, marker=style, markersize=4, label=label)
    low, high = shown - stds, shown + stds
    if np.isfinite(low).any():
        # a deviation beyond the mean has no lower end on a logarithmic axis
        panel.fill_between(places, np.where(low > 0, low, shown), high, color=line.get_color(), alpha=0.2, linewidth=0)
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


def _distinct(values: NDArray[Any]) -> list[Any]:
    return list(dict.fromkeys(values.tolist()))
