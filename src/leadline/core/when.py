"""Schedules as data: when a probe reads, a run evaluates, a projection acts."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from leadline.core.errors import UsageError, unknown


class When(Protocol):
    """A plain predicate over the steps 0 .. last of a run."""

    def due(self, step: int, *, last: int | None = None) -> bool: ...


@dataclass(frozen=True)
class Every:
    """Steps 0, n, 2n, ..."""

    steps: int = 1

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise UsageError(f"every:{self.steps} is no schedule; expected a positive number of steps")

    def due(self, step: int, *, last: int | None = None) -> bool:  # noqa: ARG002
        return step % self.steps == 0


@dataclass(frozen=True)
class Once:
    """One step only; the first by default."""

    step: int = 0

    def due(self, step: int, *, last: int | None = None) -> bool:  # noqa: ARG002
        return step == self.step


@dataclass(frozen=True)
class LogSpaced:
    """Step 0 and then `per_decade` steps in each decade: 1, 2, 5, 10, 20, 50, ... for 3.

    >>> [step for step in range(101) if LogSpaced(3).due(step)]
    [0, 1, 2, 5, 10, 22, 46, 100]
    """

    per_decade: int = 3

    def __post_init__(self) -> None:
        if self.per_decade < 1:
            raise UsageError(f"log:{self.per_decade} is no schedule; expected a positive number of steps per decade")

    def due(self, step: int, *, last: int | None = None) -> bool:  # noqa: ARG002
        if step == 0:
            return True
        decade = 10 ** (len(str(step)) - 1)
        marks = {round(decade * 10 ** (k / self.per_decade)) for k in range(self.per_decade)}
        return step in marks


@dataclass(frozen=True)
class AtEnd:
    """The last step of the run."""

    def due(self, step: int, *, last: int | None = None) -> bool:
        return last is not None and step == last


KINDS: dict[str, Callable[..., When]] = {"every": Every, "once": Once, "log": LogSpaced, "end": AtEnd}


def parse(text: str) -> When:
    """A schedule from its word: `every:100`, `once`, `once:5`, `log:3`, `end`.

    >>> parse("every:100")
    Every(steps=100)
    """
    word, _, number = text.partition(":")
    if word not in KINDS:
        raise unknown("schedule", word, KINDS)
    try:
        return KINDS[word](int(number)) if number else KINDS[word]()
    except (ValueError, TypeError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(
            f"schedule {text!r} is not understood; expected for example every:100, log:3, once or end"
        ) from None
