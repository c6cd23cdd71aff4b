"""Course: the losses of a training run so far, and whether it has learned, is lost, or stands still."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

WINDOW = 10
LEARNED = 0.5
"""The share of the loss of guessing at which something has been learned."""


@dataclass(frozen=True)
class Course:
    """`chance` is the loss of an output of zeros (nan if it is not known), `start` that of the untrained model."""

    losses: tuple[float, ...]
    chance: float = math.nan
    start: float = math.nan

    def then(self, loss: float) -> "Course":
        """The course with one more step."""
        return replace(self, losses=(*self.losses, loss))

    @property
    def scale(self) -> float:
        """The loss that what is learned is measured by: that of guessing, or of the start where it is not known."""
        known = [value for value in (self.chance, self.start, *self.losses[:1]) if math.isfinite(value) and value > 0]
        return known[0] if known else math.nan

    @property
    def smooth(self) -> list[float]:
        """Means of ten losses in a row, from the tenth step on; of all there are while there are fewer."""
        count = len(self.losses)
        window = min(WINDOW, count)
        return [sum(self.losses[k - window : k]) / window for k in range(window, count + 1)] if count else []

    @property
    def lost(self) -> bool:
        """It came to a loss that is no number."""
        return not all(map(math.isfinite, self.losses))

    @property
    def learned(self) -> bool:
        """The mean of ten losses is at most half the loss of guessing."""
        return len(self.losses) >= WINDOW and self.level <= LEARNED

    @property
    def level(self) -> float:
        """Where it stands: the last mean of ten over the loss of guessing."""
        return self.smooth[-1] / self.scale if self.losses and not self.lost else math.inf

    @property
    def lowest(self) -> float:
        """The least of the means, over the loss of guessing."""
        return min(self.smooth) / self.scale if self.losses and not self.lost else math.inf

    @property
    def latest(self) -> float:
        """Where it stands by its last three losses, over the loss of guessing."""
        last = self.losses[-3:]
        return sum(last) / len(last) / self.scale if last and not self.lost else math.inf

    @property
    def steps(self) -> int:
        return len(self.losses)

    def learned_within(self, steps: float) -> bool:
        """Did it learn in so many steps?"""
        return self.reach <= steps

    @property
    def reach(self) -> float:
        """The step at which it had learned, infinite before."""
        if self.steps < WINDOW or self.lost:
            return math.inf
        levels = enumerate(self.smooth, WINDOW)
        return next((float(step) for step, mean in levels if mean <= LEARNED * self.scale), math.inf)

    @property
    def fallen(self) -> float:
        """The part of its level by which it fell steadily over the later half of the means; 0 if it rose in between."""
        levels = self.smooth[len(self.smooth) // 2 :]
        if self.lost or not levels or any(after > before for before, after in pairwise(levels)):
            return 0.0
        return 1 - levels[-1] / levels[0]

    def forecast(self, step: float) -> float:
        """The lowest level expected by that step, thought on from the later half of the means.

        Along a straight line; along a power of the step while it is still above guessing, where losses fall steeply
        first. What was reached is not lost again.
        """
        if self.lost or not self.losses:
            return math.inf
        levels = [max(mean / self.scale, 1e-12) for mean in self.smooth[len(self.smooth) // 2 :]]
        now, before = self.steps, max(1, self.steps - len(levels) + 1)
        step = max(step, now)
        if levels[-1] > 1 and now > before:
            power = max(0.0, math.log(levels[0] / levels[-1]) / math.log(now / before))
            ahead = levels[-1] * math.pow(now / step, power)
        else:
            ahead = levels[-1] + min(0.0, levels[-1] - levels[0]) / max(1, now - before) * (step - now)
        return min(self.lowest, max(0.0, ahead))

    def __str__(self) -> str:
        if not self.losses:
            return "no step was made"
        if self.lost:
            return f"loss {self.losses[0]:.3g}, not finite after {self.steps} steps"
        return f"loss {self.losses[0]:.3g} to {self.smooth[-1]:.3g} in {self.steps} steps" + (
            f" (guessing: {self.chance:.3g})" if math.isfinite(self.chance) else ""
        )


def course(losses: Sequence[float], *, chance: float = math.nan, start: float = math.nan) -> Course:
    """The course of these losses.

    >>> course([4.0] * 10 + [1.0] * 10, chance=4.0).learned
    True
    """
    return Course(tuple(float(loss) for loss in losses), chance, start)
