"""Claims: sentences of a paper, each with a test on a recipe's table, and how such tests come to verdicts."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from leadline.analysis.stats import spread
from leadline.analysis.verdict import Verdict, at_most, judge, undecided
from leadline.core.config import Scale
from leadline.core.table import Table

SCALES: tuple[Scale, ...] = ("smoke", "laptop", "paper")
Test = Callable[[Table], Verdict]


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A sentence of the paper, where it stands, what is printed for it, and a test that gives a verdict on a table.

    `since` is the least scale at which the test decides anything; below it the verdict is undecided.
    """

    where: str
    text: str
    test: Test
    published: str = ""
    since: Scale = "smoke"


def decide(claim: Claim, table: Table, scale: Scale) -> Verdict:
    """The verdict on a claim; what was measured is shown even where the scale is too small to decide."""
    if not table.height:
        return undecided("no run has finished")
    found = claim.test(table)
    if SCALES.index(scale) < SCALES.index(claim.since):
        note = f"cannot be decided at {scale} scale, which is below {claim.since}" + (
            f"; {found.note}" * bool(found.note)
        )
        return replace(found, outcome="undecided", note=note)
    return found


def ordered(means: Sequence[float], *, seeds: int, note: str = "") -> Verdict:
    """The claim that these numbers fall from first to last; measured is the least ratio of one to the next.

    >>> print(ordered([8.0, 4.0, 1.0], seeds=3))
    holds (2)
    """
    steps = [first / second if second else math.nan for first, second in itertools.pairwise(means)]
    least = min(steps, default=math.nan) if all(map(math.isfinite, steps)) else math.nan
    return judge(least > 1, least, seeds=seeds, note=note)


def below(first: Sequence[float], second: Sequence[float], *, note: str = "") -> Verdict:
    """The claim mean(first) < mean(second); undecided while they differ by less than two standard errors.

    >>> print(below([1.0, 1.1, 0.9], [2.0, 2.1, 1.9]))
    holds (-1): 1 ± 0.1 (n = 3) against 2 ± 0.1 (n = 3)
    """
    one, other = spread(first), spread(second)
    gap = one.mean - other.mean
    seeds = min(one.count, other.count)
    said = f"{one} against {other}" + (f"; {note}" if note else "")
    error = math.hypot(*(each.error if math.isfinite(each.error) else 0.0 for each in (one, other)))
    if math.isfinite(gap) and seeds > 1 and abs(gap) < 2 * error:
        return undecided(f"{said}: closer than two standard errors", measured=gap, seeds=seeds)
    return judge(gap < 0, gap, seeds=seeds, note=said)


def constant(values: Sequence[float], *, within: float, seeds: int, note: str = "") -> Verdict:
    """The claim that the largest number is at most `within` times the smallest.

    >>> print(constant([1.41, 1.42], within=1.1, seeds=1))
    holds (1.01)
    """
    known = [value for value in values if math.isfinite(value)]
    factor = max(values) / min(values) if len(known) == len(values) and values and min(values) > 0 else math.nan
    return at_most(factor, within, seeds=seeds, note=note)
