"""Least, largest and typical gradients by the weights of each layer: extremes, percentiles, histogram.

Readings, one number per layer: `min` and `max` over all entries of dE/dW_i as the optimiser got it (accumulated,
averaged over processes, clipped if it was clipped), free of the loss scale; the percentiles `p01` ... `p99` and the
shares `histogram/00` ... `histogram/15` of the values in 16 equal parts of [min, max], over an even sample of at most
16,384.

Reference: Oyedotun, Al Ismaeil, Aouada, section 6.2, Fig. 6.
Normal: well within +-1. Early layers of plain networks that do not train reach +-5.
Cost: one pass over the gradients of the weights.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from leadline.core.when import Every, When
from leadline.probes import Axis, Moment, Reading
from leadline.probes._layers import NONE, layers
from leadline.probes._spread import fetched, readings, sketch
from leadline.taps.anatomy import Anatomy
from leadline.taps.tape import Tap

WITHOUT = "it has no gradient: frozen, not used, or set to None before the reading"


@dataclass(frozen=True, kw_only=True)
class GradientRange:
    when: When = Every(100)
    axis: ClassVar[Axis] = "layer"

    def taps(self, anatomy: Anatomy) -> Sequence[Tap]:  # noqa: ARG002
        return ()

    def read(self, at: Moment) -> Iterator[Reading]:
        found = [_dense(layer.parameter.grad) for layer in layers(at.model)]
        known = iter(fetched([sketch(gradient) for gradient in found if isinstance(gradient, Tensor)]))
        yield from readings([each if isinstance(each, str) else next(known) for each in found], empty=NONE)


def _dense(gradient: Tensor | None) -> Tensor | str:
    if gradient is None:
        return WITHOUT
    return gradient.to_dense() if gradient.is_sparse else gradient
