"""Proof: what brief training came to without and with each remedy, and whether that is a difference."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from leadline.core.rows import grid
from leadline.diagnosis.course import WINDOW, Course

Outcome = Literal["makes it train", "helps", "no difference", "makes it worse", "nothing changed", "not tried"]

HEADINGS = ("", "loss", "of guessing", "outcome")

LEAST = 0.05
"""The least difference that counts, as a part of the loss of guessing."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One remedy: what it came to, what it changed (or why nothing was), and the losses under it."""

    remedy: str
    outcome: Outcome
    said: str
    course: Course = field(default_factory=lambda: Course(()))

    @property
    def helped(self) -> bool:
        return self.outcome in ("makes it train", "helps")


@dataclass(frozen=True, kw_only=True)
class Proof:
    """Training as it is, and under each remedy from the same seed on the same batches; prints as a table."""

    before: Course
    trials: tuple[Trial, ...]
    seed: int
    seconds: float

    @property
    def best(self) -> Trial | None:
        """The remedy under which the loss came lowest, of those that helped."""
        return min((trial for trial in self.trials if trial.helped), key=lambda t: t.course.level, default=None)

    def to_json(self) -> dict[str, Any]:
        """What proofs.json has: the losses of every training, and what was said of them."""
        trials = [{**asdict(trial), "course": _numbers(trial.course)} for trial in self.trials]
        best = self.best.remedy if self.best else None
        told = {"steps": self.before.steps, "seed": self.seed, "seconds": round(self.seconds, 3), "best": best}
        return {**told, "before": _numbers(self.before), "trials": trials}

    def rows(self) -> Iterator[tuple[str, str, str, str]]:
        """What was trained, its losses, where it stands against guessing, and what that means."""
        yield "as it is", *_words(self.before), ""
        for trial in self.trials:
            yield trial.remedy, *_words(trial.course), trial.outcome

    @property
    def conclusion(self) -> str:
        """What to do about it, in a sentence."""
        if self.best is not None:
            return f"best: {self.best.remedy} ({self.best.outcome})"
        return "none of these remedies helped" if self.trials else "no remedy was proposed"

    def __str__(self) -> str:
        return "\n".join(self._lines())

    __repr__ = __str__

    def _lines(self) -> Iterator[str]:
        steps, seed = self.before.steps, self.seed
        yield f"proved in {self.seconds:.1f} s: {steps} steps each from seed {seed} on the same batches"
        yield grid(HEADINGS, list(self.rows()), right=(2,))
        yield from (f"  {trial.remedy}: {trial.said}" for trial in self.trials)
        yield self.conclusion


def judge(before: Course, after: Course) -> Outcome:
    """Whether training went differently, at the last step that both made.

    The levels are means of the last ten losses over that of guessing. They differ if they are farther apart than 0.05
    and than twice the standard error of the mean difference, step by step, over the same batches.
    """
    if after.lost or before.lost:
        return _of_lost(before, after)
    steps = min(before.steps, after.steps)
    before, after = (replace(course, losses=course.losses[:steps]) for course in (before, after))
    gain, margin = before.level - after.level, max(LEAST, 2 * _error(before, after))
    if abs(gain) <= margin or not math.isfinite(gain):
        return "no difference"
    if gain < 0:
        return "makes it worse"
    return "makes it train" if after.learned and not before.learned else "helps"


def _of_lost(before: Course, after: Course) -> Outcome:
    """One of them came to a loss that is no number; to stay finite, but no better than guessing, is no help."""
    if after.lost:
        return "no difference" if before.lost else "makes it worse"
    if after.learned:
        return "makes it train"
    return "helps" if after.level < 1 - LEAST else "no difference"


def _error(before: Course, after: Course) -> float:
    """The standard error of the mean of the last differences, over the loss of guessing."""
    pairs = zip(before.losses[-WINDOW:], after.losses[-WINDOW:], strict=True)
    gaps = [(one - other) / after.scale for one, other in pairs]
    if len(gaps) < 2:
        return math.inf
    mean = sum(gaps) / len(gaps)
    return math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / (len(gaps) - 1) / len(gaps))


def _numbers(course: Course) -> dict[str, Any]:
    return {"losses": list(course.losses), "chance": course.chance, "level": course.level, "reach": course.reach}


def _words(course: Course) -> tuple[str, str]:
    if not course.losses:
        return "", ""
    if course.lost:
        return f"{course.losses[0]:.3g}, not finite after {course.steps} steps", ""
    return f"{course.losses[0]:.3g} to {course.smooth[-1]:.3g}", f"{course.level:.2f}"
