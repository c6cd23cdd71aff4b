"""Classification error on data not trained on, less that on data trained on, in percent.

    gap = error(test) - error(train)

Readings: `gap`, `error/train`, `error/test`, in evaluation mode over the first `batches` batches of either split; and
`gap/training`, with `error/training`, the error on the training split with batch norm and dropout as they are while it
is trained. That is what a training's own log compares: running statistics that lag behind then add to the gap.

Reference: Zaeemzadeh, Rahnavard, Shah, section 4.2, Table 1: mean and maximum over the first 100 epochs, 10 runs.
Normal: 2 to 7.5 in their Table 1, with maxima from 8 (ProcResNet) to 30 (plain).
Cost: 3 `batches` forward passes.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from leadline.core.when import Every, When
from leadline.probes import Axis, Moment, Reading
from leadline.probes._passes import own_pass
from leadline.probes._readings import Found, missing, scalar
from leadline.taps.anatomy import Anatomy
from leadline.taps.tape import Tap


@dataclass(frozen=True, kw_only=True)
class GeneralisationGap:
    when: When = Every(500)
    batches: int = 16
    axis: ClassVar[Axis] = "block"

    def taps(self, anatomy: Anatomy) -> Sequence[Tap]:  # noqa: ARG002
        return ()

    def read(self, at: Moment) -> Iterator[Reading]:
        if at.splits is None:
            yield missing("gap", "it needs batches of both splits: splits=(train, test)")
            return
        with own_pass(at.model, evaluate=True):
            train, test = (error(at.model, islice(split, self.batches)) for split in at.splits)
        with own_pass(at.model):
            training = error(at.model, islice(at.splits.train, self.batches)) if at.model.training else train
        yield scalar("gap", _difference(test, train))
        yield scalar("gap/training", _difference(test, training))
        yield scalar("error/train", train)
        yield scalar("error/training", training)
        yield scalar("error/test", test)


def error(model: nn.Module, batches: Iterable[tuple[Any, Any]]) -> float | str:
    """The share of samples, in percent, whose largest score is not that of their class."""
    wrong, count, device = [], 0, next((p.device for p in model.parameters()), torch.device("cpu"))
    for inputs, targets in batches:
        scores = model(inputs.to(device))
        if not isinstance(scores, Tensor) or scores.ndim < 2 or targets.is_floating_point():
            return "it needs a model that gives class scores, and targets that are class numbers"
        wrong.append((scores.argmax(1) != targets.to(device)).sum())
        count += targets.numel()
    return 100 * float(torch.stack(wrong).sum()) / count if count else "a split has no samples"


def _difference(test: float | str, train: float | str) -> Found:
    if isinstance(test, str) or isinstance(train, str):
        return test if isinstance(test, str) else train
    return test - train
