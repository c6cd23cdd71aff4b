"""Mean absolute cosine between the representations of different samples, boundary by boundary.

    cosine_l = mean over i != j of |<h_i, h_j>| / (||h_i|| ||h_j||),    h_i the flattened x_l of sample i

Reference: Oyedotun, Al Ismaeil, Aouada, Remark 1 (in a deep plain network only one basis vector survives, so that the
columns of H_l become collinear) and Remark 2 (with skips they stay distinct).
Normal: constant along depth; 0 for directions at random, 0.2 to 0.65 behind ReLUs, whose outputs share a quadrant
(ResNet-110 at initialisation, trained ResNet-20 on the embedded digits). 1 means that all samples look alike to the
layers that follow: nothing can be learned there.
Cost: one forward pass of at most `samples` samples, in the mode the model is in and without autocast, and one N x N
Gram matrix in float64 for each boundary: 0.6 training steps at batch 128 for ResNet-110 on 128 samples. Samples whose
representation is zero have no direction and are left out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from leadline.core.when import Every, When
from leadline.linalg.gram import gram
from leadline.probes import Axis, Moment, Reading
from leadline.probes._channels import batch_first
from leadline.probes._passes import at_boundaries, batch_size, mode, no_chain, samples
from leadline.probes._readings import Found, Noted, profile
from leadline.taps.tape import Tap

if TYPE_CHECKING:
    from leadline.taps.anatomy import Anatomy


@dataclass(frozen=True, kw_only=True)
class Collinearity:
    when: When = Every(200)
    samples: int = 256
    axis: ClassVar[Axis] = "boundary"

    def taps(self, anatomy: "Anatomy") -> Sequence[Tap]:  # noqa: ARG002
        return ()

    def read(self, at: Moment) -> Iterator[Reading]:
        inputs = samples(at.inputs, self.samples)
        count = batch_size(inputs)

        def measure(_: int, hidden: Tensor) -> Found:
            return mean_cosine(batch_first(hidden, 1, count)[0])

        found = at_boundaries(at, inputs, measure)
        remark = f"{count} samples, {mode(at.model)} mode"
        yield profile("cosine", found, remark=remark, empty=no_chain(at))


def mean_cosine(hidden: Tensor) -> Found:
    """Over all pairs of different samples (batch first), from their Gram matrix in float64."""
    if not hidden.numel():
        return f"the representation is empty: {tuple(hidden.shape)}"
    if hidden.is_complex():
        return f"the representation is {str(hidden.dtype).removeprefix('torch.')}, not real floating point"
    products = gram(hidden.flatten(1)[None])
    if not torch.isfinite(products).all():
        return "not finite"
    alive = products.diagonal() > 0
    zeros, number = int((~alive).sum()), int(alive.sum())
    if number < 2:
        return f"{zeros} of {len(alive)} samples are zero: no pair to compare" if zeros else "one sample: no pair"
    lengths = products.diagonal()[alive].sqrt()
    cosines = (products[alive][:, alive] / lengths / lengths[:, None]).abs().clamp(max=1)
    mean = float((cosines.sum() - cosines.diagonal().sum()) / (number * (number - 1)))
    return Noted(mean, f"without {zeros} samples that are zero") if zeros else mean
