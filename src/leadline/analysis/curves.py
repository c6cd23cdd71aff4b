"""Curves of several runs on one axis: interpolation over the loss instead of over time."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Numbers = NDArray[np.float64]


def at_levels(losses: ArrayLike, values: ArrayLike, levels: ArrayLike) -> Numbers:
    """The values at given losses, linear between the steps around the first crossing (Li et al., Figs 5 and 6).

    A level that the run never crosses has no value (nan); one that a step meets exactly has that step's.

    >>> at_levels([4.0, 2.0, 1.0], [10.0, 20.0, 40.0], [3.0, 1.5, 0.5]).tolist()
    [15.0, 30.0, nan]
    """
    loss, value = np.asarray(losses, dtype=np.float64), np.asarray(values, dtype=np.float64)
    return np.array([_at(loss, value, level) for level in np.asarray(levels, dtype=np.float64)])


def crossing(losses: ArrayLike, level: float) -> int | None:
    """The first step i for which the level lies between loss i and loss i + 1; None if there is none.

    >>> crossing([4.0, 2.0, 1.0], 1.5)
    1
    """
    loss = np.asarray(losses, dtype=np.float64)
    low, high = np.minimum(loss[:-1], loss[1:]), np.maximum(loss[:-1], loss[1:])
    found = np.flatnonzero((low <= level) & (level <= high))
    return int(found[0]) if len(found) else None


def _at(loss: Numbers, value: Numbers, level: float) -> float:
    i = crossing(loss, level)
    if i is None:
        return float("nan")
    if loss[i] == loss[i + 1]:
        return float(value[i])
    share = (loss[i] - level) / (loss[i] - loss[i + 1])
    return float((1 - share) * value[i] + share * value[i + 1])


def log_levels(low: float, high: float, count: int) -> Sequence[float]:
    """`count` levels from low to high, evenly spaced in the logarithm."""
    return [float(level) for level in np.geomspace(low, high, count)]
