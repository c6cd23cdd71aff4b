"""Least, largest and typical outputs of each layer, before any norm or activation: extremes, percentiles, histogram.

Readings, one number per layer: `min` and `max` over all entries of W_i x (and its bias) for the samples; the
percentiles `p01` ... `p99` and the shares `histogram/00` ... `histogram/15` of the values in 16 equal parts of
[min, max], over an even sample of at most 16,384.

Reference: Oyedotun, Al Ismaeil, Aouada, section 6.2, Fig. 4, where these are units' activations.
Normal: about 3 standard deviations to both sides, of the order of 10 behind normalised inputs. A norm after the layer
hides any scale from what follows: plain networks with batch norm train on with outputs of 1e6 where the first update
was that large, and only the layer itself shows it.
Cost: one forward pass of at most `samples` samples, in the mode the model is in and without autocast.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from leadline.core.when import Every, When
from leadline.probes import Axis, Moment, Reading
from leadline.probes._layers import NONE, layers
from leadline.probes._passes import listen, samples
from leadline.probes._spread import fetched, readings, sketch
from leadline.taps.anatomy import Anatomy
from leadline.taps.places import Place
from leadline.taps.tape import Tap


@dataclass(frozen=True, kw_only=True)
class OutputRange:
    when: When = Every(100)
    samples: int = 64
    axis: ClassVar[Axis] = "layer"

    def taps(self, anatomy: Anatomy) -> Sequence[Tap]:  # noqa: ARG002
        return ()

    def read(self, at: Moment) -> Iterator[Reading]:
        owners = {id(module): path for path, module in at.model.named_modules()}
        places = [Place(owners[id(layer.module)], "out") for layer in layers(at.model)]
        found, _ = listen(at, samples(at.inputs, self.samples), places, lambda _, output: sketch(output))
        known = iter(fetched([each for each in found if not isinstance(each, str)]))
        yield from readings([each if isinstance(each, str) else next(known) for each in found], empty=NONE)
