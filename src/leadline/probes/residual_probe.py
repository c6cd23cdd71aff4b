"""What a linear read-out of every boundary makes of the targets: how the representation improves along depth.

    risk_l = min over H of (1/2N) |Y - [1 X_l] H|_F^2,    accuracy_l = share of samples whose largest score is right

X_l (samples x channels) is x_l averaged over pixels or tokens, Y the one-hot classes, or real targets as they are.
One number per boundary: `risk`, and `accuracy` for classes.

Reference: Chen, Lee, Garudadri, Rao, Remark 2 and Corollaries 1, 2: with the features of a wide enough ResNEst no
representation is worse, in linear prediction, than those before it or the input. (As probes: Alain and Bengio 2016.)
Normal: accuracy rises and risk falls along depth (0.44 to 1.0 and 0.38 to 0.02 in a trained pre-activation ResNet-20
on the embedded digits). A stretch without change is one whose blocks do nothing for the targets, and a fall is
information lost.
Cost: one forward pass, in evaluation mode, of about `samples` training samples (of the batch where no training split
is at hand), and one small least-squares fit for each boundary: two and a half training steps at batch 128 for
ResNet-110. With hardly more samples than channels anything is fitted: such boundaries are left out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import torch
from torch import Tensor

from leadline.core.errors import LeadlineError
from leadline.core.when import Every, When
from leadline.linalg.nested_fit import feature_gram, least_squares_prefixes
from leadline.probes import Axis, Moment, Reading
from leadline.probes._channels import batch_first, channel_dims
from leadline.probes._features import joined_targets, pooled, too_many
from leadline.probes._losses import class_count
from leadline.probes._passes import batch_size, listen, no_chain, training_samples
from leadline.probes._readings import missing, profile
from leadline.taps.inputs import Inputs
from leadline.taps.tape import Tap

if TYPE_CHECKING:
    from leadline.taps.anatomy import Anatomy


class Fit(NamedTuple):
    risk: float
    accuracy: float


@dataclass(frozen=True, kw_only=True)
class ResidualProbe:
    when: When = Every(500)
    samples: int = 1024
    axis: ClassVar[Axis] = "boundary"

    def taps(self, anatomy: "Anatomy") -> Sequence[Tap]:  # noqa: ARG002
        return ()

    def read(self, at: Moment) -> Iterator[Reading]:
        try:
            batches = training_samples(at, self.samples)
            targets = joined_targets(batches)
            classes = class_count(targets)
        except LeadlineError as error:
            yield missing("risk", str(error))
            return
        found = [fit(one, targets, classes) for one in _representations(at, batches)]
        count = 0 if targets is None else len(targets)
        remark = f"{count} samples, eval mode"
        risks = [one if isinstance(one, str) else one.risk for one in found]
        yield profile("risk", risks, remark=remark, empty=no_chain(at))
        if classes is not None and found:
            accuracies = [one if isinstance(one, str) else one.accuracy for one in found]
            yield profile("accuracy", accuracies, remark=remark)


def _representations(at: Moment, batches: Sequence[Inputs]) -> list[Tensor | str]:
    """X_0, ..., X_L over all batches, or the reason why there is none."""
    dims, parts = channel_dims(at), list[list[Tensor | str]]()
    for inputs in batches:
        count = batch_size(inputs)

        def measure(place: int, tensor: Tensor, count: int = count) -> Tensor:
            return pooled(*batch_first(tensor, dims[place], count))

        parts.append(listen(at, inputs, at.anatomy.boundaries, measure, evaluate=True)[0])
    return [_joined(column) for column in zip(*parts, strict=True)]


def _joined(parts: Sequence[Tensor | str]) -> Tensor | str:
    known = [part for part in parts if isinstance(part, Tensor)]
    return torch.cat(known) if len(known) == len(parts) else next(part for part in parts if isinstance(part, str))


def fit(representation: Tensor | str, targets: Tensor | None, classes: int | None) -> Fit | str:
    """The best affine map from representations (samples, channels) to the targets."""
    if isinstance(representation, str) or targets is None:
        return representation if isinstance(representation, str) else "there are no targets"
    if reason := too_many(representation.shape[1], len(representation)):
        return reason
    try:
        found = least_squares_prefixes(feature_gram([([representation], targets)], classes=classes))
    except LeadlineError as error:
        return str(error)
    heads = found.heads[0]
    scores = representation.double() @ heads[1:] + heads[0]
    right = 0.0 if classes is None else float((scores.argmax(1) == targets).double().mean())
    return Fit(found.risk[0], right)
