"""Frobenius norm of the weights of each layer, and its average over the layers.

    norm_i = ||W_i||_F,    average = (1/n) sum_i ||W_i||_F

Reference: Li, Jiao, Han, Weissman, section 4.1, Figs 2 and 3: the deeper a residual network, the smaller the average.
Normal: falls or stays while training, and is smaller in a deeper network of the same family.
Cost: one pass over the weights, below 1% of a training step.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from leadline.core.when import Every, When
from leadline.probes import Axis, Moment, Reading
from leadline.probes._layers import NONE, layers
from leadline.probes._readings import Found, Noted, profile, scalar
from leadline.probes._spread import of_weights
from leadline.taps.anatomy import Anatomy
from leadline.taps.reductions import FROBENIUS
from leadline.taps.tape import Tap


@dataclass(frozen=True, kw_only=True)
class WeightNorm:
    when: When = Every(1)
    axis: ClassVar[Axis] = "layer"

    def taps(self, anatomy: Anatomy) -> Sequence[Tap]:  # noqa: ARG002
        return ()

    def read(self, at: Moment) -> Iterator[Reading]:
        parts = of_weights(layers(at.model), FROBENIUS.map)
        norms = [part if isinstance(part, str) else float(FROBENIUS.merge([part])) for part in parts]
        yield profile("norm", [_noted(norm) for norm in norms], empty=NONE)
        known = [norm for norm in norms if not isinstance(norm, str)]
        yield scalar("average", _noted(float(np.mean(known))) if known else NONE)


def _noted(norm: float | str) -> Found:
    return norm if isinstance(norm, str) or math.isfinite(norm) else Noted(norm, "some of the weights are not finite")
