"""Least, largest and typical activations at every boundary between blocks: extremes, percentiles, histogram.

Readings, one number per boundary: `min` and `max` over all entries of x_l in the batch; the percentiles `p01` ... `p99`
and the shares `histogram/00` ... `histogram/15` of the values in 16 equal parts of [min, max], over an even sample of
at most 16,384 values a micro-batch.

Reference: Oyedotun, Al Ismaeil, Aouada, section 6.2, Fig. 4.
Normal: below 10 with normalisation. Plain networks that do not train reach 1e6.
Cost: one pass over the boundaries, about 1% of a training step.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from leadline.core.when import Every, When
from leadline.probes import Axis, Moment, Reading
from leadline.probes._passes import no_chain
from leadline.probes._spread import merged, readings, sketch
from leadline.taps.anatomy import Anatomy
from leadline.taps.reductions import Reduction
from leadline.taps.tape import Tap

SKETCH = Reduction("range", sketch, merged)


@dataclass(frozen=True, kw_only=True)
class ActivationRange:
    when: When = Every(100)
    axis: ClassVar[Axis] = "boundary"

    def taps(self, anatomy: Anatomy) -> Sequence[Tap]:
        return [Tap(place, SKETCH) for place in anatomy.boundaries]

    def read(self, at: Moment) -> Iterator[Reading]:
        taps = self.taps(at.anatomy)
        yield from readings([at.heard.why(tap) or at.heard[tap] for tap in taps], empty=no_chain(at))
