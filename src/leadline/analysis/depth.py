"""How a reading goes with depth: does it stay, grow or explode, and at what depth does it come to a limit.

Readings are in decades, y = log10, one point a network; L is its number of blocks. Two fits by least squares:

    y = a + b L          b the slope, in decades per block
    y = a + p log10 L    p the exponent of a power law

The bend is the slope over the deeper half of the depths, divided by that over the shallower half: 1 for the straight
line, which is an exponential of L, and below 1 for a power.

    depth-invariant   the fitted change over the depths measured is below a factor of two, or y falls
    growing           more than that, with a bend nearer to that of a power; exp(sqrt L) still counts here
    exploding         more than that, with a bend nearer to 1, or above it; or y is infinite at some depth
    undecided         fewer than three depths have a number, or the interval of the slope contains zero
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leadline.analysis.slopes import Slope, slope

Growth = Literal["depth-invariant", "growing", "exploding", "undecided"]

CHANGE = math.log10(2.0)
"""A smaller change over all depths is none."""
DEPTHS = 3
"""Fewer depths do not tell a line from a power."""


@dataclass(frozen=True, kw_only=True)
class Trend:
    """A reading over depth: its points, slope and exponent with their intervals, and what they come to."""

    blocks: tuple[float, ...]
    decades: tuple[float, ...]
    slope: Slope
    exponent: Slope
    verdict: Growth
    reason: str

    @property
    def means(self) -> dict[float, float]:
        """The mean over seeds at every depth; infinite where any is, nan where there is no number."""
        return {place: _mean(self._at(place)) for place in sorted(set(self.blocks))}

    def _at(self, place: float) -> NDArray[np.float64]:
        return np.array([y for x, y in zip(self.blocks, self.decades, strict=True) if x == place])

    def reaches(self, level: float) -> Slope:
        """The number of blocks at which the fit comes to so many decades, and the ends the interval gives it."""
        bent = self.verdict == "growing"
        fitted = self.exponent if bent else self.slope
        x, y = _known(np.log10(self.blocks) if bent else self.blocks, self.decades)
        if not len(x):
            return Slope(math.nan, math.nan, math.nan)
        steep, gentle = (_across(x, y, level, rise) for rise in (fitted.high, fitted.low))
        ends = [_across(x, y, level, fitted.value), *sorted((steep, gentle))]
        return Slope(*(10.0 ** min(end, 300.0) if bent else end for end in ends))


def trend(blocks: ArrayLike, decades: ArrayLike) -> Trend:
    """The trend of points that stand for networks, a few of the same depth or one.

    >>> found = trend([8, 16, 32, 64], [0.8, 1.6, 3.2, 6.4])
    >>> found.verdict, round(found.reaches(10.0).value, 6)
    ('exploding', 100.0)
    """
    places, values = np.asarray(blocks, dtype=np.float64), np.asarray(decades, dtype=np.float64)
    line, power = slope(places, values), slope(np.log10(places), values)
    verdict, reason = _verdict(places, values, line)
    return Trend(
        blocks=tuple(places.tolist()),
        decades=tuple(values.tolist()),
        slope=line,
        exponent=power,
        verdict=verdict,
        reason=reason,
    )


def _verdict(places: NDArray[np.float64], values: NDArray[np.float64], line: Slope) -> tuple[Growth, str]:
    infinite = places[np.isposinf(values)]
    if len(infinite):
        return "exploding", f"not finite from {infinite.min():.0f} blocks on"
    x, y = _known(places, values)
    if len(set(x.tolist())) < DEPTHS:
        return "undecided", f"a number at fewer than {DEPTHS} depths"
    change = line.value * (x.max() - x.min())
    if change < CHANGE:
        return "depth-invariant", f"changes by a factor of {10**change:.2f} in all"
    if not line.low > 0:
        return "undecided", "the rise is not told from chance"
    if not bend(x, y) < (1 + bend(x, np.log10(x))) / 2:
        return "exploding", f"{10**line.value:.3g}-fold with every block"
    power = slope(np.log10(x), y)
    return "growing", f"as the power {power.value:.2g} of the number of blocks"


def _known(x: ArrayLike, y: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    places, values = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    known = np.isfinite(places) & np.isfinite(values)
    return places[known], values[known]


def bend(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """How steep the deeper half of the depths is, in parts of the shallower half; infinite where that does not rise.

    >>> bend(np.array([1.0, 2.0, 3.0]), np.array([0.0, 4.0, 6.0]))
    0.5
    """
    depths = sorted(set(x.tolist()))
    half = (len(depths) + 1) // 2
    early, late = (slope(x[np.isin(x, part)], y[np.isin(x, part)]).value for part in (depths[:half], depths[-half:]))
    return late / early if early > 0 else math.inf


def _across(x: NDArray[np.float64], y: NDArray[np.float64], level: float, rise: float) -> float:
    """Where the line of this rise through the centre of the points comes to `level`; infinite if it never does."""
    return float(x.mean() + (level - y.mean()) / rise) if rise > 0 else math.inf


def _mean(values: NDArray[np.float64]) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else math.nan
