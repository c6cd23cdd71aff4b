"""Slopes of straight lines through points, by least squares, with the 95% confidence interval of Student's t."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

# the 97.5% point of Student's t for 1, 2, ... degrees of freedom
_T = (12.7062, 4.30265, 3.18245, 2.77645, 2.57058, 2.44691, 2.36462, 2.30600, 2.26216, 2.22814, 2.20099, 2.17881)
_Z = 1.959964


@dataclass(frozen=True)
class Slope:
    """A slope and the ends of its confidence interval, which are not numbers where two points or fewer decide it."""

    value: float
    low: float
    high: float

    def __contains__(self, value: float) -> bool:
        return bool(self.low <= value <= self.high)

    def __str__(self) -> str:
        return f"{self.value:.3g} [{self.low:.3g}, {self.high:.3g}]"


def slope(x: ArrayLike, y: ArrayLike) -> Slope:
    """Of y over x, taking each point as one observation; points that are not finite are left out.

    >>> print(slope([1.0, 2.0, 3.0, 4.0], [2.0, 4.1, 5.9, 8.0]))
    1.98 [1.8, 2.16]
    """
    places, values = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    known = np.isfinite(places) & np.isfinite(values)
    places, values = places[known], values[known]
    if len(set(places.tolist())) < 2:
        return Slope(float("nan"), float("nan"), float("nan"))
    apart, free = places - places.mean(), len(places) - 2
    square = float(apart @ apart)
    rise = float(apart @ values) / square
    if not free:
        return Slope(rise, float("nan"), float("nan"))
    left = values - values.mean() - rise * apart
    half = t_quantile(free) * float(np.sqrt(left @ left / free / square))
    return Slope(rise, rise - half, rise + half)


def log_slope(x: ArrayLike, y: ArrayLike) -> Slope:
    """The exponent p of y ~ x^p: the slope of log y over log x.

    >>> round(log_slope([1.0, 2.0, 4.0], [3.0, 12.0, 48.0]).value, 9)
    2.0
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return slope(np.log(np.asarray(x, dtype=np.float64)), np.log(np.asarray(y, dtype=np.float64)))


def t_quantile(free: int) -> float:
    """The 97.5% point of Student's t, from a table or the normal's by the expansion in 1 / `free`."""
    if free <= len(_T):
        return _T[free - 1]
    z = _Z
    terms = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96, (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + float(sum(term / free**power for power, term in enumerate(terms, 1)))
