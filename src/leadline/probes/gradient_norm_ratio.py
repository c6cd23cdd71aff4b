"""Gradient norm at the output of each block over that at its input, and their running product along depth.

    ratio_l = ||dE/dx_{l+1}|| / ||dE/dx_l||,    norm_l = ||dE/dx_l||,    product_l = ratio_1 ... ratio_l

Frobenius over the whole batch, free of the loss scale. `slope` is that of the least-squares line through log10 of the
product against l, in decades per block: above 0 the gradient shrinks on its way back, below 0 it grows.
`ratio/transition` and `ratio/non-transition` are geometric means over the blocks that change the shape or whose skip is
more than an identity, and over the others. With `stem`, `ratio/stem` is that of all there is in front of the first
block; trainings by a configuration take the gradient at the input for it, elsewhere the input has to require one.

Reference: Zaeemzadeh, Rahnavard, Shah, section 4.1 and Fig. 3; their Theorems 1 and 2 bound the reciprocal.
Normal: 0.9 to 1.1 in the blocks of a deep residual network with identity skips; |slope| times the number of blocks
below 1.
Cost: one pass over the gradient at every boundary, below 1% of a training step.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from leadline.core.when import Every, When
from leadline.probes import Axis, Moment, Reading
from leadline.probes._passes import no_chain
from leadline.probes._readings import Found, Noted, missing, profile, scalar
from leadline.taps.anatomy import Anatomy, Block
from leadline.taps.places import Place
from leadline.taps.reductions import FROBENIUS, Array
from leadline.taps.tape import Heard, Tap

INPUT = Place("", "in", (0,))
UNKNOWN = "the gradient is not finite"
ZERO = "the gradient is zero, or so small (1e-22) that its square is,"


@dataclass(frozen=True, kw_only=True)
class GradientNormRatio:
    when: When = Every(1)
    stem: bool = False
    axis: ClassVar[Axis] = "block"

    def taps(self, anatomy: Anatomy) -> Sequence[Tap]:
        places = [place for block in anatomy.blocks for place in (block.input, block.output)]
        return [_tap(place) for place in ([INPUT] if self.stem and places else []) + places]

    def read(self, at: Moment) -> Iterator[Reading]:
        blocks = at.anatomy.blocks
        if not blocks:
            yield missing("ratio", no_chain(at))
            return
        before = [_norm(at.heard, block.input, "input") for block in blocks]
        after = [_norm(at.heard, block.output, "output") for block in blocks]
        ratios = profile("ratio", [_ratio(*pair) for pair in zip(before, after, strict=True)])
        ratio = np.array(ratios.value)
        decades = running_decades(ratio)
        changes = np.array([is_transition(block) for block in blocks])
        yield ratios
        yield profile("norm", before)
        nothing = "" if _known(ratio).any() else "no block was measured"
        yield profile("product", [nothing or 10.0**each for each in decades])
        yield scalar("slope", nothing or slope(decades))
        yield scalar("ratio/transition", _mean(ratio[changes], "transition"))
        yield scalar("ratio/non-transition", _mean(ratio[~changes], "non-transition"))
        if self.stem:
            yield scalar("ratio/stem", _ratio(_norm(at.heard, INPUT, "input"), before[0]))


def is_transition(block: Block) -> bool:
    """Does more than add to what it is given: another shape behind the batch, or a skip that is no identity."""
    return block.kind == "transition" or block.in_shape[1:] != block.out_shape[1:]


def running_decades(ratio: Array) -> Array:
    """log10 of ratio_1 ... ratio_l; a block that could not be measured counts as 1.

    >>> running_decades(np.array([10.0, math.nan, 100.0])).tolist()
    [1.0, 1.0, 3.0]
    """
    return np.cumsum(np.log10(np.where(_known(ratio), ratio, 1.0)))


def slope(decades: Array) -> float:
    """Decades per block: of the least-squares line through (0, 0), (1, decades_1), (2, decades_2), ..."""
    return float(np.polyfit(np.arange(len(decades) + 1), np.concatenate([[0.0], decades]), 1)[0])


def _known(ratio: Array) -> NDArray[np.bool_]:
    return np.isfinite(ratio) & (ratio > 0)


def _tap(place: Place) -> Tap:
    return Tap(place, FROBENIUS, of="gradient")


def _norm(heard: Heard, place: Place, side: str) -> float | str:
    tap = _tap(place)
    if tap not in heard:
        return f"{side}: {heard.why(tap)}"
    norm = float(heard[tap])
    return UNKNOWN if math.isnan(norm) else norm


def _ratio(before: float | str, after: float | str) -> Found:
    if isinstance(before, str) or isinstance(after, str):
        return before if isinstance(before, str) else after
    if not (math.isfinite(before) and math.isfinite(after)):
        return UNKNOWN
    if before == 0:
        return Noted(math.inf, f"{ZERO} at the input") if after else f"{ZERO} at both sides"
    return after / before


def _mean(ratio: Array, kind: str) -> Found:
    """The geometric mean of what is positive and finite."""
    known = ratio[_known(ratio)]
    if not len(known):
        return f"no {kind} block was measured" if len(ratio) else f"the model has no {kind} block"
    return float(np.exp(np.log(known).mean()))
