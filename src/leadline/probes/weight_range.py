"""Least, largest and typical weights of each layer: extremes, percentiles, histogram.

Readings, one number per layer: `min` and `max` over all entries of W_i; the percentiles `p01` ... `p99` and the shares
`histogram/00` ... `histogram/15` of the values in 16 equal parts of [min, max], over an even sample of at most 16,384.

Reference: Oyedotun, Al Ismaeil, Aouada, section 6.2, Fig. 5.
Normal: about 3 standard deviations of the initialisation to both sides. Plain networks that do not train reach 1e5 in
early layers and collapse to 0 in late ones.
Cost: one pass over the weights.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from leadline.core.when import Every, When
from leadline.probes import Axis, Moment, Reading
from leadline.probes._layers import NONE, layers
from leadline.probes._spread import of_weights, readings, sketch
from leadline.taps.anatomy import Anatomy
from leadline.taps.tape import Tap


@dataclass(frozen=True, kw_only=True)
class WeightRange:
    when: When = Every(100)
    axis: ClassVar[Axis] = "layer"

    def taps(self, anatomy: Anatomy) -> Sequence[Tap]:  # noqa: ARG002
        return ()

    def read(self, at: Moment) -> Iterator[Reading]:
        yield from readings(of_weights(layers(at.model), sketch), empty=NONE)
