"""Theorems: one file per statement of a paper. This is what such a file holds, and how a verdict comes about.

A file's docstring is its card: the statement in our words and its place, what both sides are, what it needs. Its
`STATEMENTS` are the statement, or its parts, or the statement as printed and beside it the form that holds. Each has a
`check` that yields cases from random numbers, and a `broken` twin of it that must fail: a check that cannot fail says
nothing.
"""

import fnmatch
import hashlib
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from leadline.analysis.verdict import Verdict, judge, undecided
from leadline.core import plugins
from leadline.core.errors import unknown

if TYPE_CHECKING:
    from leadline.theorems._draw import Draw

PACKAGE = "leadline.theorems"
MOST_NAMED = 5  # failing cases in a note


@dataclass(frozen=True)
class Case:
    """One instance: how far its two sides are apart, and how far rounding alone may take them, in the same units."""

    what: str
    error: float
    tolerance: float

    @property
    def decided(self) -> bool:
        """Numbers that are not finite decide nothing, an endless tolerance neither."""
        return math.isfinite(self.error) and math.isfinite(self.tolerance)


@dataclass(frozen=True)
class Aside:
    """A number beside the verdict: what happens without an assumption, how large a quantity gets."""

    what: str
    value: float


Check = Callable[["Draw"], Iterator[Case | Aside]]


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A sentence that can be true or false: `place` in the paper, `text` in our words, how to measure it.

    `broken` is the same check on something for which it must fail; None where the statement itself fails.
    `note` says what the numbers cannot, above all why a statement fails.
    """

    place: str
    text: str
    check: Check
    broken: Check | None = None
    part: str = ""
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a statement came to; `verdict.measured` is the error of the worst case, `tolerance` the one it had."""

    name: str
    paper: str
    statement: Statement
    verdict: Verdict
    tolerance: float
    case: str
    seconds: float
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        error = self.verdict.measured
        return {
            "name": self.name,
            "paper": self.paper,
            "place": self.statement.place,
            "statement": self.statement.text,
            "verdict": self.verdict.outcome,
            "worst_error": error if math.isfinite(error) else None,
            "tolerance": self.tolerance if math.isfinite(self.tolerance) else None,
            "case": self.case,
            "seeds": self.verdict.seeds,
            "seconds": round(self.seconds, 3),
            "notes": list(self.notes),
        }


def select(words: Sequence[str]) -> list[tuple[str, Statement]]:
    """The statements meant by file names, names of parts, paper keys or globs, in the listing's order; all by none.

    A part goes by `file.part`, the only statement of a file by the file's name.
    """
    files = plugins.names(PACKAGE)
    papers = sorted({name.partition("_")[0] for name in files})
    wanted = [f"{word}_*" if word in papers else word for word in words] or ["*"]
    named = [pair for file in files if any(_may_mean(word, file) for word in wanted) for pair in statements(file)]
    chosen: dict[str, Statement] = {}
    for given, word in zip(words or ["*"], wanted, strict=True):
        found = {n: s for n, s in named if fnmatch.fnmatch(n, word) or fnmatch.fnmatch(n.partition(".")[0], word)}
        if not found:
            raise unknown("theorem", given, (*files, *papers, *(name for name, _ in named)), listing=_LISTING)
        chosen |= found
    return [(name, statement) for name, statement in named if name in chosen]


_LISTING = "leadline list theorems"


def _may_mean(word: str, file: str) -> bool:
    return fnmatch.fnmatch(file, word) or fnmatch.fnmatch(file, word.partition(".")[0])


def statements(file: str) -> list[tuple[str, Statement]]:
    """The statements of one file by name."""
    found: Sequence[Statement] = plugins.module(PACKAGE, file, kind="theorem").STATEMENTS
    return [(f"{file}.{statement.part}" if statement.part else file, statement) for statement in found]


def verify(name: str, statement: Statement, *, seeds: int) -> Result:
    """The verdict over all cases of `seeds` repetitions; the random numbers depend on name and seed alone."""
    from leadline.theorems._draw import Draw

    start = time.perf_counter()
    yielded = [item for seed in range(seeds) for item in statement.check(Draw(_digest(f"{name}/{seed}")))]
    cases = [item for item in yielded if isinstance(item, Case)]
    asides = [item for item in yielded if isinstance(item, Aside)]
    worst = max(cases, key=_severity)
    return Result(
        name=name,
        paper=name.partition("_")[0],
        statement=statement,
        verdict=decide(cases, seeds=seeds),
        tolerance=worst.tolerance,
        case=worst.what,
        seconds=time.perf_counter() - start,
        notes=tuple(_notes(statement, cases, asides)),
    )


def decide(cases: Sequence[Case], *, seeds: int) -> Verdict:
    """Fails by any error beyond its tolerance; else undecided by any number that is not finite; else holds."""
    worst = max(cases, key=_severity)
    if worst.decided:
        return judge(worst.error <= worst.tolerance, worst.error, seeds=seeds, note=worst.what)
    note = f"{worst.what}: error {worst.error}, tolerance {worst.tolerance}"
    return undecided(note, measured=worst.error, seeds=seeds)


def _severity(case: Case) -> tuple[int, float]:
    """Failures are worse than numbers that are not finite, and those worse than what holds."""
    if not case.decided:
        return (1, 0.0)
    share = case.error / case.tolerance if case.tolerance else math.inf if case.error else 0.0
    return (2 if share > 1 else 0, share)


def _notes(statement: Statement, cases: Sequence[Case], asides: Sequence[Aside]) -> Iterator[str]:
    if statement.note:
        yield statement.note
    if bad := [case.what for case in cases if not case.error <= case.tolerance]:
        kinds = list(dict.fromkeys(bad))
        more = f" and {len(kinds) - MOST_NAMED} more kinds" if len(kinds) > MOST_NAMED else ""
        yield f"not in {len(bad)} of {len(cases)} cases: {'; '.join(kinds[:MOST_NAMED])}{more}"
    for what in dict.fromkeys(aside.what for aside in asides):
        yield f"{what}: {_range(aside.value for aside in asides if aside.what == what)}"


def _range(values: Iterable[float]) -> str:
    """One number, or the least and the greatest."""
    shown = [f"{value:.3g}" for value in sorted(values)]
    return shown[0] if shown[0] == shown[-1] else f"{shown[0]} to {shown[-1]}"


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=7).digest())
