"""Verdicts: whether a claim holds, fails or cannot be decided, and the number that decided it."""

import math
from dataclasses import dataclass
from typing import Literal

Outcome = Literal["holds", "fails", "undecided"]


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a claim came to: `measured` is the number it was decided by, over `seeds` repetitions.

    A number that is not finite decides nothing: such a verdict can only be undecided.
    """

    outcome: Outcome
    measured: float
    seeds: int = 1
    note: str = ""

    def __post_init__(self) -> None:
        if self.outcome != "undecided" and not math.isfinite(self.measured):
            raise ValueError(f"a verdict on {self.measured} is undecided; got {self.outcome!r}")

    def __str__(self) -> str:
        return f"{self.outcome} ({self.measured:.3g})" + (f": {self.note}" if self.note else "")


def judge(true: bool, measured: float, *, seeds: int = 1, note: str = "") -> Verdict:
    """Holds if `true`, fails if not, undecided where `measured` is not finite.

    >>> print(judge(False, 0.2))
    fails (0.2)
    >>> print(judge(False, math.nan, note="the run diverged"))
    undecided (nan): the run diverged
    """
    if not math.isfinite(measured):
        return undecided(note or f"measured {measured}", measured=measured, seeds=seeds)
    return Verdict(outcome="holds" if true else "fails", measured=measured, seeds=seeds, note=note)


def at_most(measured: float, bound: float, *, seeds: int = 1, note: str = "") -> Verdict:
    """The claim measured <= bound."""
    return judge(measured <= bound, measured, seeds=seeds, note=note)


def at_least(measured: float, bound: float, *, seeds: int = 1, note: str = "") -> Verdict:
    """The claim measured >= bound."""
    return judge(measured >= bound, measured, seeds=seeds, note=note)


def undecided(note: str, *, measured: float = math.nan, seeds: int = 1) -> Verdict:
    """Nothing can be said, and why."""
    return Verdict(outcome="undecided", measured=measured, seeds=seeds, note=note)
