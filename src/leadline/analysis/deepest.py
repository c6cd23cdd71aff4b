"""The largest depth that will still train, as far as trainings and trends over depth tell, and what that rests on."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from leadline.analysis.depth import Trend
from leadline.core.rows import grid
from leadline.core.sparkline import sparkline

TRAINS = ("healthy", "trains slowly")
FAILS = "will not train"

LIMITS: Mapping[str, float] = {
    "gradient": 4.0,
    "signal": 4.0,
    "likeness": 2.0,
    "first loss": 1.0,
    "steps": math.log10(200.0),
}
"""The decades of a reading at which networks stop to train, where no training of this one says otherwise."""
TRENDS = ("reading", "", "first", "last", "decades per block", "verdict", "")
RUNGS = ("depth", "blocks", "parameters", "a short training", "")
BEYOND = 10.0
"""So many times the deepest network that was measured, nothing is said any more."""


@dataclass(frozen=True, kw_only=True)
class Rung:
    """One depth: how many blocks it has, and what a short training of it came to."""

    depth: int
    blocks: int
    parameters: int
    verdict: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """The largest depth that trains, in blocks and as the family counts it, with the ends of what is likely.

    Infinite means that no limit was seen, nan that nothing can be said.
    """

    blocks: float
    low: float
    high: float
    depth: float
    basis: str


def predict(rungs: Sequence[Rung], trends: Mapping[str, Trend]) -> Prediction:
    """From the shallowest depth that failed, the deepest below it that trained, and the first reading at its limit."""
    failed = min((rung.blocks for rung in rungs if rung.verdict == FAILS), default=math.inf)
    trained = max((rung.blocks for rung in rungs if rung.verdict in TRAINS and rung.blocks < failed), default=0)
    measured = max(rung.blocks for rung in rungs)
    name, blocks, low, high = _first_limit(trends)
    where = f"the reading {name!r} comes to {10 ** LIMITS[name]:.3g} at {blocks:.0f} blocks" if name else ""
    if math.isfinite(failed):
        within = min(max(blocks, trained), failed - 1) if name else float(trained)
        below = f"it trained with {trained} blocks and" if trained else "it"
        basis = f"{below} did not with {failed:.0f}; " + (where or "no reading grows")
        return _prediction(rungs, within, trained, failed - 1, basis)
    if not trained:
        return _prediction(rungs, math.nan, math.nan, math.nan, "no training was long enough to tell")
    if not name:
        open_ones = [each for each, one in trends.items() if one.verdict == "undecided" and each != "steps"]
        grows = f"is known to grow ({', '.join(open_ones)}: undecided)" if open_ones else "grows"
        basis = f"it trained with {trained} blocks, and no reading {grows} over the depths measured"
        return _prediction(rungs, math.inf, trained, math.inf, basis)
    if blocks > BEYOND * measured:
        basis = f"it trained with {trained} blocks; {where}, too far from the {measured} that were measured to rely on"
        return _prediction(rungs, math.inf, BEYOND * measured, math.inf, basis)
    basis = f"it trained with {trained} blocks; {where}, if it goes on as it did"
    return _prediction(rungs, max(blocks, trained), max(low, trained), max(high, trained), basis)


def _first_limit(trends: Mapping[str, Trend]) -> tuple[str, float, float, float]:
    """The reading that comes to its limit first, the blocks at which it does, and its interval."""
    rising = {name: one for name, one in trends.items() if one.verdict in ("growing", "exploding") and name in LIMITS}
    places = {name: one.reaches(LIMITS[name]) for name, one in rising.items()}
    known = {name: place for name, place in places.items() if math.isfinite(place.value)}
    if not known:
        return "", math.inf, math.inf, math.inf
    name = min(known, key=lambda each: known[each].value)
    return name, known[name].value, known[name].low, known[name].high


def _prediction(rungs: Sequence[Rung], blocks: float, low: float, high: float, basis: str) -> Prediction:
    return Prediction(blocks=blocks, low=low, high=high, depth=_depth(rungs, blocks), basis=basis)


def _depth(rungs: Sequence[Rung], blocks: float) -> float:
    """The family's own count for so many blocks, by a straight line through those that were built."""
    if not math.isfinite(blocks):
        return blocks
    counts, named = [rung.blocks for rung in rungs], [rung.depth for rung in rungs]
    return float(np.polynomial.Polynomial.fit(counts, named, 1)(blocks))


@dataclass(frozen=True, kw_only=True)
class DepthCheck:
    """A recipe at several depths: a trend for every reading, a short training at every depth, and what to expect."""

    family: str
    rungs: tuple[Rung, ...]
    trends: Mapping[str, Trend]
    prediction: Prediction
    seconds: float

    @property
    def exit_code(self) -> int:
        """1 if a depth did not train or a reading explodes, else 0."""
        return int(
            any(rung.verdict == FAILS for rung in self.rungs)
            or any(one.verdict == "exploding" for one in self.trends.values())
        )

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    __repr__ = __str__

    def _lines(self) -> Iterator[str]:
        depths, counts = [rung.depth for rung in self.rungs], [rung.blocks for rung in self.rungs]
        yield f"{self.family} at depth {', '.join(map(str, depths))} ({counts[0]} to {counts[-1]} blocks)"
        yield ""
        yield grid(TRENDS, [_row(*each) for each in self.trends.items()], right=(2, 3))
        yield ""
        trained = [(str(r.depth), str(r.blocks), f"{r.parameters:,}", r.verdict, r.reason) for r in self.rungs]
        yield grid(RUNGS, trained, right=(0, 1, 2))
        yield ""
        yield f"largest trainable depth: {self._expected()}"
        yield f"  based on: {self.prediction.basis}"
        yield f"measured in {self.seconds:.1f} s"

    def _expected(self) -> str:
        found = self.prediction
        if math.isnan(found.blocks):
            return "not known"
        if math.isinf(found.blocks):
            return f"no limit seen up to {found.low:.0f} blocks"
        if not found.blocks:
            return f"below {self.rungs[0].depth} ({self.rungs[0].blocks} blocks)"
        high = f"{found.high:.0f}" if math.isfinite(found.high) else "any number"
        return f"about {found.depth:.0f} ({found.blocks:.0f} blocks; {found.low:.0f} to {high})"


def _row(name: str, one: Trend) -> tuple[str, ...]:
    means = list(one.means.values())
    ends = (_size(means[0]), _size(means[-1]))
    return name, sparkline(means), *ends, str(one.slope), one.verdict, one.reason


def _size(decades: float) -> str:
    """What so many decades stand for.

    >>> _size(2.0), _size(400.0)
    ('100', '1e400')
    """
    return f"{10**decades:.3g}" if not abs(decades) > 300 or math.isinf(decades) else f"1e{decades:.0f}"
