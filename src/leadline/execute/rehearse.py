"""The bounded rehearsal: what a model says before training, and how copies of it fare in a few steps of it.

Everything is read from copies; the model given is never run. The plan, until the budget of seconds is spent:

    start      readings along depth on one batch, which parameters the gradient reaches, what guessing costs
    rate       at most K steps at the rate asked for, ended early once it has learned or is lost
    slower ... the same at a quarter and four times the rate, only if it has not learned by then
    much-slower ... the same at distant rates, only if that does not help and the start does not tell the cause
    one-batch  the same on a single batch, also at a quarter and a sixteenth, only if nothing has learned by then

Readings are those of the run store; losses are `loss/train/loss` at the rate asked for, `rehearsal/loss/...` elsewhere.
"""

import copy
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from torch import nn
from torch.optim import Optimizer

from leadline.core.errors import UsageError
from leadline.core.table import Table
from leadline.diagnosis.course import Course
from leadline.diagnosis.evidence import Evidence
from leadline.diagnosis.judge import is_settled
from leadline.execute.fault import located
from leadline.execute.guessing import guessing
from leadline.store.reader import Reading as Line
from leadline.store.reader import to_table
from leadline.taps.inputs import eager, understand
from leadline.taps.preserve import preserved
from leadline.train.sound import sound
from leadline.train.sounder import LossFunction

START = (
    "gradient_norm_ratio",
    "activation_range",
    "collinearity",
    "hidden_condition",
    "weight_norm",
    "gradient_range",
    "feature_predictability",
)
AFTER = ("gradient_norm_ratio", "activation_range", "collinearity", "weight_norm", "weight_condition")
NEAR = {"slower": 1 / 4, "faster": 4.0}
"""The rates beside the one asked for, as its multiples."""
FAR = {"much-slower": 1 / 256, "much-faster": 256.0, "very-much-slower": 1 / 16384, "very-much-faster": 16384.0}
"""Rates tried only where neither of those learns."""
SHARE = 0.6
"""The share of the budget that the rate asked for may use."""


@dataclass
class Clock:
    """How much of the budget is left."""

    budget: float
    started: float = field(default_factory=time.monotonic)

    @property
    def spent(self) -> float:
        return time.monotonic() - self.started

    def left(self, share: float = 1.0) -> bool:
        return self.spent < share * self.budget


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is trained, on what, how long; `settled` if the start tells the cause, should there be trouble."""

    model: nn.Module
    optimizer: Optimizer
    batches: Sequence[Any]
    loss_fn: LossFunction
    steps: int
    clock: Clock
    settled: bool

    def copied(self, factor: float) -> tuple[nn.Module, Optimizer]:
        """The model and its optimiser at `factor` times the rate."""
        model, optimizer = duplicate(self.model, self.optimizer)
        for group in optimizer.param_groups:
            group["lr"] = group["lr"] * factor
        return model, optimizer


@dataclass(frozen=True)
class Rehearsal:
    """The record (anatomy, places, facts) and the readings of a rehearsal, and the seconds it took."""

    record: Mapping[str, Any]
    readings: Table
    seconds: float


def duplicate(model: nn.Module, optimizer: Optimizer) -> tuple[nn.Module, Optimizer]:
    """A copy of both in which the optimiser moves the copied parameters."""
    try:
        return copy.deepcopy((model, optimizer))
    except Exception as error:  # whatever somebody's model raises when it is copied
        reason = (str(error).strip().splitlines() or [""])[0]
        raise UsageError(
            f"the model cannot be copied ({type(error).__name__}: {reason}); pass one that copy.deepcopy takes"
        ) from error


def rehearse(
    model: nn.Module,
    batches: Sequence[Any],
    loss_fn: LossFunction,
    optimizer: Optimizer,
    *,
    steps: int = 60,
    budget: float = 50.0,
    elsewhere: bool = True,
) -> Rehearsal:
    """Measure a copy of `model` and train copies of it on `batches`, again and again in their order.

    With `elsewhere` off it is trained at the rate asked for and nothing else is tried.
    """
    clock = Clock(budget)
    first, stepper = duplicate(eager(model), optimizer)
    first.train()
    with preserved(first):
        with located(first, batches[0]):
            profile = sound(first, batches[0], loss_fn, probes=START)
        record = {**profile.record, **_facts(first, batches, loss_fn)}
        lines = list(_scalars("start", record["start"]))
        tables = [profile.readings.where(probe=name) for name in START]
        plan = Plan(
            model=first,
            optimizer=stepper,
            batches=batches,
            loss_fn=loss_fn,
            steps=steps,
            clock=clock,
            settled=is_settled(Evidence(record, Table.concat([*tables, to_table(lines)]))),
        )
        courses = _courses(plan, record["start"])
        more = list(courses if elsewhere else islice(courses, 1))
    for found, after in more:
        lines += found
        tables += after
    return Rehearsal(record, Table.concat([*tables, to_table(lines)]), clock.spent)


# -- before training -----------------------------------------------------------------------------------------------


def _facts(model: nn.Module, batches: Sequence[Any], loss_fn: LossFunction) -> dict[str, Any]:
    """Which parameters are frozen or not reached, as names and as shares, the first loss and that of guessing."""
    inputs = understand(model, batches[0])
    with preserved(model):
        output = inputs.call(model)
        loss = loss_fn(output, inputs.targets)
        if loss.requires_grad:
            loss.backward()  # type: ignore[no-untyped-call]
        parameters = dict(model.named_parameters())
        total = sum(p.numel() for p in parameters.values())
        frozen = [name for name, p in parameters.items() if not p.requires_grad]
        unreached = [name for name, p in parameters.items() if p.requires_grad and p.grad is None]
        still = [name for name, p in parameters.items() if p.grad is not None and not p.grad.abs().sum()]
        names = {"frozen": frozen, "unreached": unreached, "still": still}
        shares = {key: sum(parameters[n].numel() for n in found) / max(1, total) for key, found in names.items()}
        start = {**shares, "parameters": float(total), "loss": float(loss.detach())}
    targets = [understand(model, batch).targets for batch in batches]
    return {"connection": names, "start": {**start, "chance": guessing(loss_fn, output, targets)}}


# -- training ------------------------------------------------------------------------------------------------------


def _courses(plan: Plan, start: Mapping[str, float]) -> Iterator[tuple[list[Line], list[Table]]]:
    """The losses of every course that was run, and what was read after the first."""
    model, asked = _train(plan, 1.0, start, share=SHARE)
    yield list(_losses("loss", "train/loss", asked.losses)), _after(plan, model, asked)
    if asked.learned:
        return
    found: dict[str, Course] = {}
    for name, factor in {**NEAR, **({} if plan.settled else FAR)}.items():
        if name in FAR and any(course.learned for course in found.values()):
            break
        if plan.clock.left():
            _, found[name] = _train(plan, factor, start)
            yield list(_losses("rehearsal", f"loss/{name}", found[name].losses)), []
    if len(plan.batches) > 1 and not plan.settled and not any(course.learned for course in found.values()):
        yield list(_losses("rehearsal", "loss/one-batch", _one_batch(plan, start).losses)), []


def _one_batch(plan: Plan, start: Mapping[str, float]) -> Course:
    """A single batch again and again, at the first rate that learns it."""
    course = Course(())
    for factor in (1.0, 1 / 4, 1 / 16):
        if plan.clock.left() and not course.learned:
            _, course = _train(plan, factor, start, only=1)
    return course


def _train(
    plan: Plan, factor: float, start: Mapping[str, float], *, share: float = 1.0, only: int | None = None
) -> tuple[nn.Module, Course]:
    """A copy trained until it has learned, is lost, or steps or seconds run out."""
    model, optimizer = plan.copied(factor)
    course = Course((), chance=start["chance"], start=start["loss"])
    for step in range(plan.steps):
        course = course.then(take(model, optimizer, plan.batches[step % len(plan.batches[:only])], plan.loss_fn))
        if course.learned or course.lost or not plan.clock.left(share):
            break
    return model, course


def take(model: nn.Module, optimizer: Optimizer, batch: Any, loss_fn: LossFunction) -> float:
    """One step of training; the loss before it."""
    with located(model, batch):
        inputs = understand(model, batch)
        loss = loss_fn(inputs.call(model), inputs.targets)
        optimizer.zero_grad(set_to_none=True)
        if loss.requires_grad:
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        return float(loss.detach())


def _after(plan: Plan, model: nn.Module, course: Course) -> list[Table]:
    """Readings of the trained copy, dated by the step it has come to."""
    if not plan.clock.left(SHARE):
        return []
    table = sound(model, plan.batches[0], plan.loss_fn, probes=AFTER).readings
    chosen = [table.where(probe=name) for name in AFTER]
    return [Table({**part, "step": part["step"] + len(course.losses)}) for part in chosen]


# -- lines ---------------------------------------------------------------------------------------------------------


def _losses(probe: str, name: str, values: Sequence[float]) -> Iterator[Line]:
    return ({"step": step, "probe": probe, "name": name, "value": value} for step, value in enumerate(values))


def _scalars(probe: str, values: Mapping[str, float]) -> Iterator[Line]:
    return ({"step": 0, "probe": probe, "name": name, "value": value} for name, value in values.items())
