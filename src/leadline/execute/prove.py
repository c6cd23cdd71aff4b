"""Proves remedies: copies of a model are trained briefly, as it is and under each remedy, all else being the same."""

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from torch import nn
from torch.optim import Adam, Optimizer

from leadline import remedies
from leadline.core.errors import UsageError, unknown
from leadline.diagnosis.course import Course
from leadline.diagnosis.finding import Diagnosis
from leadline.execute.check import RATE, STEPS
from leadline.execute.guessing import guessing
from leadline.execute.rehearse import Clock, duplicate, take
from leadline.remedies._proof import Proof, Trial, judge
from leadline.taps.inputs import eager, understand
from leadline.taps.preserve import preserved
from leadline.train import seeds
from leadline.train.sounder import LossFunction

BUDGET = 120.0

Told = Callable[[str, int, int], object]
"""Is told what is trained, the step it has come to, and of how many."""


def proposed(diagnosis: Diagnosis) -> list[str]:
    """The remedies of the root cause, best first."""
    return [remedy.name for remedy in diagnosis.root.remedies] if diagnosis.root else []


def prove(
    model: nn.Module,
    batch: Any,
    loss_fn: LossFunction,
    optimizer: Optimizer | None = None,
    *,
    among: Diagnosis | Iterable[str] | None = None,
    batches: Iterable[Any] = (),
    steps: int = STEPS,
    budget: float = BUDGET,
    seed: int = 0,
    progress: Told | None = None,
) -> Proof:
    """Train copies of `model` for at most `steps` steps: as it is, then under each remedy `among` those.

    Each starts from the same weights and random state and sees the same batches in the same order: `batch`, further
    `batches` of the same make, and these again. `among` are names, or a diagnosis whose root cause proposes some; all
    there are when not given. `budget` is in seconds: it is shared out so that every training makes the same number
    of steps, and is kept but for the step that is under way. The model and its optimiser are left as they are.
    """
    inner = eager(model)
    names = _names(among)
    wanted = [parameter for parameter in inner.parameters() if parameter.requires_grad]
    if steps < 1 or budget <= 0:
        raise UsageError(f"steps={steps}, budget={budget}: expected at least one step and more than 0 seconds")
    if not wanted:
        raise UsageError(f"{type(inner).__name__} cannot be trained: no parameter of it is to be")
    first, stepper = duplicate(inner, optimizer or Adam(wanted, lr=RATE))
    shown = [batch, *islice(batches, steps - 1)]
    lab = Lab(first.train(), stepper, shown, loss_fn, seed, progress or _silent)
    clock = Clock(budget)
    with seeds.untouched():
        start = lab.untrained()
        untouched = duplicate(first, stepper)
        before = lab.train(*untouched, start, steps=steps, within=budget / (len(names) + 1), what="as it is")
        length, trials = steps if before.lost else before.steps, []
        for number, name in enumerate(names):
            left = (budget - clock.spent) / (len(names) - number)
            trials.append(lab.trial(name, start, before, steps=length, within=left))
    return Proof(before=before, trials=tuple(trials), seed=seed, seconds=clock.spent)


@dataclass(frozen=True)
class Lab:
    """What all trainings have in common."""

    model: nn.Module
    optimizer: Optimizer
    batches: Sequence[Any]
    loss_fn: LossFunction
    seed: int
    progress: Told

    def untrained(self) -> Course:
        """No step yet; knows what guessing costs."""
        inputs = understand(self.model, self.batches[0])
        with preserved(self.model), torch.no_grad():
            targets = [understand(self.model, batch).targets for batch in self.batches]
            return Course((), chance=guessing(self.loss_fn, inputs.call(self.model), targets))

    def trial(self, name: str, start: Course, before: Course, *, steps: int, within: float) -> Trial:
        """Training under a remedy; one that cannot be applied here is said to be so."""
        if name not in remedies.names():
            return Trial(remedy=name, outcome="not tried", said="this is for you to do")
        model, optimizer = duplicate(self.model, self.optimizer)
        try:
            change = remedies.apply(model, name, copy.deepcopy(self.batches[0]), optimizer)
            if change.no_op:
                return Trial(remedy=name, outcome="nothing changed", said=change.reason)
            course = self.train(model, optimizer, start, steps=steps, within=within, what=name)
        except Exception as error:  # whatever an altered model of somebody's raises
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            return Trial(remedy=name, outcome="not tried", said=f"it failed here: {reason}")
        said = "; ".join(line.strip() for line in str(change).splitlines()[1:])
        return Trial(remedy=name, outcome=judge(before, course), said=said, course=course)

    def train(
        self, model: nn.Module, optimizer: Optimizer, course: Course, *, steps: int, within: float, what: str
    ) -> Course:
        """So many steps, or fewer if the seconds are spent or the loss is no number any more."""
        seeds.seed_all(self.seed)
        clock = Clock(within)
        for step in range(steps):
            self.progress(what, step, steps)
            course = course.then(take(model, optimizer, self.batches[step % len(self.batches)], self.loss_fn))
            if course.lost or not clock.left():
                break
        return course


def _names(wanted: Diagnosis | Iterable[str] | None) -> list[str]:
    if isinstance(wanted, Diagnosis):
        return proposed(wanted)
    names = list(remedies.names() if wanted is None else wanted)
    for name in names:
        if name not in remedies.names():
            raise unknown("remedy", name, remedies.names(), listing="leadline list remedies")
    return names


def _silent(what: str, step: int, steps: int) -> None:
    """Tells nobody."""
