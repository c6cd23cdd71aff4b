"""Readings along depth: one panel a probe, transition blocks marked, the spread of ranges shaded."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from leadline.figures.style import blank, styled

if TYPE_CHECKING:
    from leadline.analysis.profile import Profile

COLUMNS = 3
BANDS = (("min", "max", 0.15), ("p01", "p99", 0.25), ("p25", "p75", 0.4))
MOST_LINES = 3


def draw(profile: "Profile") -> Figure:
    """The last readings of every probe that has a number for each block, boundary or layer."""
    probes: dict[str, list[str]] = {}
    for metric in profile.metrics:
        if len(profile[metric]) > 1:
            probe, _, name = metric.partition("/")
            probes.setdefault(probe, []).append(name)
    columns = min(COLUMNS, max(1, len(probes)))
    rows = -(-max(1, len(probes)) // columns)
    with styled():
        figure = blank(width=1.0 + 3.6 * columns, height=2.8 * rows)
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for panel, (probe, names) in zip(axes, probes.items(), strict=False):
            _panel(panel, profile, probe, names)
        for panel in axes[len(probes) :]:
            panel.set_axis_off()
    return figure


def _panel(panel: Axes, profile: "Profile", probe: str, names: Sequence[str]) -> None:
    panel.set(title=probe, xlabel=profile.axis(probe))
    if {"min", "max", "p50"} <= set(names):
        _bands(panel, profile, probe)
        largest = np.nanmax(np.abs([profile[f"{probe}/{name}"] for name in ("min", "max")]), initial=1e-12)
        panel.set_yscale("symlog", linthresh=largest / 100)
        return
    for name in [name for name in names if not name.startswith("histogram/")][:MOST_LINES]:
        values = profile[f"{probe}/{name}"]
        (line,) = panel.plot(_places(values), values, label=name, linewidth=1.2)
        if profile.axis(probe) == "block":
            marked = np.flatnonzero(profile.transitions()[: len(values)])
            panel.plot(marked + 1, values[marked], "o", markersize=4, color=line.get_color())
    if _positive_over_decades(panel):
        panel.set_yscale("log")
    panel.legend(fontsize="small")


def _bands(panel: Axes, profile: "Profile", probe: str) -> None:
    for low, high, alpha in BANDS:
        values = profile[f"{probe}/{low}"]
        panel.fill_between(_places(values), values, profile[f"{probe}/{high}"], color="C0", alpha=alpha, linewidth=0)
    middle = profile[f"{probe}/p50"]
    panel.plot(_places(middle), middle, color="C0", linewidth=1.2)


def _places(values: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.arange(1, len(values) + 1)


def _positive_over_decades(panel: Axes) -> bool:
    numbers = np.concatenate([np.asarray(line.get_ydata(), dtype=np.float64) for line in panel.get_lines()])
    finite = numbers[np.isfinite(numbers)]
    return bool(len(finite)) and bool(finite.min() > 0) and bool(finite.max() > 20 * finite.min())
