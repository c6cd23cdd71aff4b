"""The training loop: forward, backward, read, step; projections act in the optimiser's post-step hook."""

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from leadline.core.errors import LeadlineError
from leadline.train.optim import Rate, set_rate
from leadline.train.processes import averaged


class Batches(Protocol):
    """What the loop asks of data: batches as a pure function of epoch and place, so that resuming is exact."""

    def __len__(self) -> int: ...

    def epoch(self, e: int, start: int = 0) -> Iterator[tuple[Tensor, Tensor]]: ...


class NotFinite(LeadlineError):
    """The loss is no number any more: the step, the value, and the batch that showed it."""

    def __init__(self, step: int, value: float, inputs: Tensor) -> None:
        super().__init__(f"the loss is {value} at step {step}")
        self.step, self.value, self.inputs = step, value, inputs


class Observer(Protocol):
    """What listens in: `around` a step's forward and backward pass, `loss` with its value, `updated`, `after`.

    `updated` comes with the update made and its gradients still there; `after` gets the number of updates made so far,
    and answers False to stop the run there.
    """

    def around(self, step: int, inputs: Tensor, targets: Tensor) -> AbstractContextManager[object]: ...

    def loss(self, step: int, value: float) -> None: ...

    def updated(self, step: int, loss: Tensor) -> None: ...

    def after(self, steps: int) -> bool: ...


@dataclass(frozen=True, kw_only=True)
class Trainer:
    """The fixed parts of a run; `forward` is the model, compiled or not.

    With several processes each passes its share of a batch; inside `apart` gradients are not exchanged yet.
    """

    forward: Callable[[Tensor], Tensor]
    model: nn.Module
    optimizer: Optimizer
    loss_fn: nn.Module
    rate: Rate
    autocast: Callable[[], AbstractContextManager[object]] = field(default=nullcontext)
    apart: Callable[[], AbstractContextManager[object]] = field(default=nullcontext)
    accumulate: int = 1
    clip: float | None = None

    def backward(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Adds the gradient of the mean loss over the batch, cut into `accumulate` pieces; returns that loss."""
        total: Tensor | None = None
        pieces = list(zip(inputs.chunk(self.accumulate), targets.chunk(self.accumulate), strict=True))
        for number, (piece, wanted) in enumerate(pieces, 1):
            with self.apart() if number < len(pieces) else nullcontext():
                with self.autocast():
                    loss = self.loss_fn(self.forward(piece), wanted)
                if self.accumulate > 1:
                    loss = loss * (len(piece) / len(inputs))
                loss.backward()
            total = loss.detach() if total is None else total + loss.detach()
        assert total is not None
        return total

    def run(self, batches: Batches, observer: Observer, *, start: int, steps: int) -> None:
        """Takes the steps start .. steps - 1. On an accelerator the losses are fetched in groups, not one by one."""
        group = 1 if next(self.model.parameters()).device.type == "cpu" else 16
        pending: list[tuple[int, Tensor]] = []
        self.model.train()
        for step, (inputs, targets) in stream(batches, start, steps):
            set_rate(self.optimizer, self.rate(step))
            with observer.around(step, inputs, targets):
                loss = self.backward(inputs, targets)
            pending.append((step, loss))
            if len(pending) >= group or step + 1 == steps or (step + 1) % len(batches) == 0:
                report(pending, observer, inputs)
            if self.clip is not None:
                nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
            self.optimizer.step()
            observer.updated(step, loss)
            self.optimizer.zero_grad(set_to_none=True)
            if not pending and not observer.after(step + 1):
                return


def stream(batches: Batches, start: int, steps: int) -> Iterator[tuple[int, tuple[Tensor, Tensor]]]:
    """The batches of the steps start .. steps - 1, epoch after epoch."""
    step = start
    while step < steps:
        epoch, place = divmod(step, len(batches))
        for batch in batches.epoch(epoch, start=place):
            yield step, batch
            step += 1
            if step == steps:
                return


def report(pending: list[tuple[int, Tensor]], observer: Observer, inputs: Tensor) -> None:
    """Hands the losses gathered so far to the observer, in one transfer; one that is not finite ends the run.

    They are the means over the processes, so that all of them know the same.
    """
    values = averaged(torch.stack([loss.double() for _, loss in pending])).tolist()
    for (step, _), value in zip(pending, values, strict=True):
        observer.loss(step, value)
        if not math.isfinite(value):
            raise NotFinite(step, value, inputs)
    pending.clear()
