"""Loss and accuracy of a model on a split, in evaluation mode; the mode is put back afterwards."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True)
class Score:
    """Mean loss and, for classes, the share of right answers (nan for regression)."""

    loss: float
    accuracy: float
    count: int


def loss_function(name: str, targets: Tensor) -> nn.Module:
    """`auto` is cross-entropy for whole-number targets and half the mean squared norm of the error otherwise."""
    classes = not targets.is_floating_point()
    if name == "cross-entropy" or (name == "auto" and classes):
        return nn.CrossEntropyLoss()
    return SquaredError()


class SquaredError(nn.Module):
    """L = 1/(2N) sum_n ||f(x_n) - y_n||^2; class labels are taken one-hot."""

    def forward(self, outputs: Tensor, targets: Tensor) -> Tensor:
        if not targets.is_floating_point():
            targets = functional.one_hot(targets, outputs.shape[-1]).to(outputs.dtype)
        return 0.5 * (outputs - targets).pow(2).sum(dim=-1).mean()


@torch.no_grad()
def evaluate(
    model: nn.Module,
    batches: Iterable[tuple[Tensor, Tensor]],
    loss_fn: nn.Module,
    *,
    autocast: AbstractContextManager[object] | None = None,
    gather: Callable[[Tensor], Tensor] = lambda mine: mine,
) -> Score:
    """The score over all batches; sums are kept in float64 on the device, one transfer at the end.

    `gather` makes the sums of one process, which has its share of the batches, those of all of them.
    """
    training = model.training
    model.eval()
    total: Tensor | None = None
    try:
        with autocast or nullcontext():
            for inputs, targets in batches:
                outputs = model(inputs)
                row = _row(outputs, targets, loss_fn)
                total = row if total is None else total + row
    finally:
        model.train(training)
    if total is None:
        return Score(float("nan"), float("nan"), 0)
    loss, right, count = gather(total).tolist()
    accuracy = right / count if count and not targets.is_floating_point() else float("nan")
    return Score(loss / count, accuracy, int(count))


def _row(outputs: Tensor, targets: Tensor, loss_fn: nn.Module) -> Tensor:
    count = len(targets)
    if not count:  # this process has no share of the last, incomplete batch
        return torch.zeros(3, dtype=torch.float64, device=outputs.device)
    loss = loss_fn(outputs.float() if outputs.dtype == torch.bfloat16 else outputs, targets).double() * count
    right = loss.new_zeros(()) if targets.is_floating_point() else (outputs.argmax(1) == targets).sum().double()
    return torch.stack([loss, right, loss.new_tensor(float(count))])
