"""What guessing costs: the least loss of an output that is the same for all samples, whatever the input is."""

import contextlib
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

STEPS = 25
LEAST = 1e-3
"""A constant output that comes below this part of the loss of zeros has learned the few targets there are by heart."""

LossFunction = Callable[[Any, Any], Tensor]


def guessing(loss_fn: LossFunction, output: Any, targets: Sequence[Any]) -> float:
    """The loss of the best constant output on these targets, one item a batch; `output` is what a model gave.

    For cross-entropy it is the entropy of the labels that were shown, for the squared error their variance. Where
    outputs are no vectors, and where there are too few targets to tell, it is the loss of an output of zeros; nan if
    the loss takes the output apart in a way zeros do not bear.
    """
    try:
        with torch.no_grad():
            zeros = float(loss_fn(tree_map_only(Tensor, torch.zeros_like, output), targets[0]))
    except Exception:  # whatever somebody's loss raises
        return math.nan
    fitted = [each for each in targets if isinstance(each, Tensor) and each.ndim]
    if not isinstance(output, Tensor) or output.ndim != 2 or len(fitted) < len(targets):
        return zeros
    with contextlib.suppress(Exception):  # a loss that wants more than an output of this shape
        best = _constant(loss_fn, output, fitted)
        if LEAST * zeros <= best <= zeros:
            return best
    return zeros


def _constant(loss_fn: LossFunction, output: Tensor, targets: Sequence[Tensor]) -> float:
    constant = torch.zeros(output.shape[1], dtype=output.dtype, device=output.device, requires_grad=True)
    optimizer = torch.optim.LBFGS([constant], max_iter=STEPS, line_search_fn="strong_wolfe")

    def mean() -> Tensor:
        return torch.stack([loss_fn(constant.expand(len(each), -1), each) for each in targets]).mean()

    def closure() -> float:
        optimizer.zero_grad()
        loss = mean()
        loss.backward()  # type: ignore[no-untyped-call]
        return float(loss.detach())

    with torch.enable_grad():
        optimizer.step(closure)  # type: ignore[no-untyped-call]
    with torch.no_grad():
        return float(mean())
