"""Learning curves of several runs on one pair of axes: training loss and test accuracy over steps."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from leadline.core.table import Table
from leadline.figures.style import blank, styled


def draw(runs: Mapping[str, Table]) -> Figure:
    """One colour a run, named by the mapping's keys; losses are smoothed over 9 steps, the raw ones stay behind."""
    with styled():
        figure = blank()
        left, right = figure.subplots(1, 2)
        for name, readings in runs.items():
            loss = readings.where(name="train/loss")
            (line,) = left.plot(loss["step"], smooth(loss["value"]), label=name)
            left.plot(loss["step"], loss["value"], color=line.get_color(), alpha=0.25, linewidth=0.8)
            accuracy = readings.where(name="test/accuracy")
            right.plot(accuracy["step"], 100 * accuracy["value"], marker="o", markersize=3, color=line.get_color())
        left.set(title="training loss", xlabel="step", yscale="log")
        right.set(title="test accuracy, %", xlabel="step", ylim=(0, 102))
        figure.legend(loc="outside lower center", ncols=len(runs))
    return figure


def smooth(values: NDArray[np.float64], *, width: int = 9) -> NDArray[np.float64]:
    """The mean over a window that shrinks at the ends.

    >>> smooth(np.array([0.0, 3.0, 6.0]), width=3).tolist()
    [1.5, 3.0, 4.5]
    """
    padded = np.convolve(values, np.ones(width), mode="full")
    counts = np.convolve(np.ones(len(values)), np.ones(width), mode="full")
    half = (width - 1) // 2
    return (padded / counts)[half : half + len(values)]
