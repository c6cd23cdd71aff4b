"""A row of numbers as one line of small bars."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

BARS = "▁▂▃▄▅▆▇█"
MISSING, INFINITE = "·", "∞"
DECADES = 10.0
"""Positive numbers that span more than this factor are drawn by their logarithm."""


def sparkline(values: Sequence[float] | NDArray[np.float64], *, width: int = 32) -> str:
    """At most `width` marks; of several numbers under one mark the one farthest from the median is drawn.

    >>> sparkline([1, 2, 3, float("nan"), 5, float("inf")])
    '▁▃▅·█∞'
    >>> sparkline([1, 10, 1e7])
    '▁▂█'
    """
    numbers = _scaled(np.asarray(values, dtype=np.float64))
    finite = numbers[np.isfinite(numbers)]
    middle = float(np.median(finite)) if len(finite) else 0.0
    marks = (
        [_farthest(part, middle) for part in np.array_split(numbers, min(width, len(numbers)))] if len(numbers) else []
    )
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
    return "".join(_mark(mark, low, high) for mark in marks)


def _scaled(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    finite = numbers[np.isfinite(numbers)]
    if len(finite) and finite.min() > 0 and finite.max() > DECADES * finite.min():
        return np.log10(numbers)
    return numbers


def _farthest(part: NDArray[np.float64], middle: float) -> float:
    distances = np.nan_to_num(np.abs(part - middle), nan=-1.0, posinf=np.inf)
    return float(part[int(np.argmax(distances))])


def _mark(value: float, low: float, high: float) -> str:
    if np.isnan(value):
        return MISSING
    if np.isinf(value):
        return INFINITE
    share = (value - low) / (high - low) if high > low else 0.5
    return BARS[min(int(share * len(BARS)), len(BARS) - 1)]
