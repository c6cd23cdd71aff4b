"""Which of the losses a bound is known for the loss function is, found by comparing numbers, not names."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from torch import Tensor
from torch.nn import functional as F

from leadline.core.errors import UsageError

CLOSE = 1e-4
"""Relative: a loss summed in another order, in single precision, still counts as the same."""


@dataclass(frozen=True)
class Task:
    """A loss = factor * standard form, of `scores` (samples, outputs) and `targets`.

    Standard forms: mean cross-entropy; (1/2N) |Y - scores|_F^2. `classes` is None for real targets.
    """

    kind: Literal["cross-entropy", "squared error"]
    scores: Tensor
    targets: Tensor
    classes: int | None
    factor: float = 1.0


def class_count(targets: Tensor | None) -> int | None:
    """How many classes integer targets (samples,) name; None for real ones (samples, outputs)."""
    if targets is None:
        raise UsageError("there are no targets, one or more for each sample")
    if targets.is_floating_point() and targets.ndim == 2:
        return None
    if targets.is_floating_point() or targets.ndim != 1 or not len(targets) or int(targets.min()) < 0:
        kind = f"{str(targets.dtype).removeprefix('torch.')} {tuple(targets.shape)}"
        raise UsageError(f"expected class numbers (samples,) or real targets (samples, outputs); got {kind}")
    return int(targets.max()) + 1


def task(loss: float, outputs: Iterable[Tensor], targets: Tensor | None) -> Task:
    """What tensor among `outputs` gives this mean loss, and by which form."""
    classes = class_count(targets)
    if targets is None or math.isnan(loss):
        raise UsageError("there is no loss function, or its value is not a number")
    for scores in (one.double() for one in outputs if one.ndim == 2 and len(one) == len(targets)):
        if classes is not None and scores.shape[1] >= classes and _same(loss, float(F.cross_entropy(scores, targets))):
            return Task("cross-entropy", scores, targets, scores.shape[1])
        if classes is None and scores.shape == targets.shape:
            half = float((scores - targets).square().sum()) / (2 * len(targets))
            for factor in (1.0, 2.0, 2 / scores.shape[1], 1 / scores.shape[1]):
                if _same(loss, factor * half):
                    return Task("squared error", scores, targets, None, factor)
    raise UsageError("the loss is neither cross-entropy nor squared error of an output (samples, outputs)")


def _same(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=CLOSE, abs_tol=CLOSE**2)
