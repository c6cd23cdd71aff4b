"""Condition numbers of the weights, layer by layer: every mode of each kernel's HOSVD.

    kappa_k = sigma_max(W_(k)) / sigma_min(W_(k)),    W_(k) the mode-k unfolding, d_k x (all other dimensions)

Readings, one number per layer: `kappa` (the largest over the modes), `kappa/mode0` (output channels), `kappa/mode1`
(input channels), `kappa/mode2` ... (space), `kappa_kept` (over the directions that are not lost) and `lost` (how many
are), both of the mode that gives `kappa`. A weight with two modes has one spectrum for both.

Reference: Oyedotun, Al Ismaeil, Aouada, eq. (8) and Figs 7, 8, 10, 12 (HOSVD of every layer; the paper does not say
which mode it prints).
Infinite means exactly singular: zero or repeated rows or columns. A sigma at or below 4 eps(dtype of the weight)
(sqrt m + sqrt n) / sqrt(max(m, n)) sigma_max is not told from zero; kappa is then a lower bound and the note says so.
Normal: 1.2 to 7 for convolutions at He initialisation (ResNet-110) and in a trained residual network (2 to 7, median
2.5, in a pre-activation ResNet-20 on the embedded digits); a square random matrix has a few times its width (Edelman
1988). Growth along depth by decades is what the paper shows for plain networks in trouble (its Figs 7, 8); at
initialisation kappa hardly depends on the architecture.
Cost: no pass through the model; about 2% of a training step at batch 128 for ResNet-110. All weights of one shape are
taken together, the spatial modes from one joint Gram matrix, all Gram matrices of one size in one eigenvalue call.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from leadline.core.when import Every, When
from leadline.linalg.conditioning import Condition, headline, hosvd_conditions
from leadline.probes import Axis, Moment, Reading
from leadline.probes._layers import NONE, layers
from leadline.probes._readings import kappa, number, profile
from leadline.taps.tape import Tap

if TYPE_CHECKING:
    from leadline.taps.anatomy import Anatomy


@dataclass(frozen=True, kw_only=True)
class WeightCondition:
    """`largest_side` bounds the cost: a weight whose smaller side is longer is not measured."""

    when: When = Every(100)
    largest_side: int = 4096
    axis: ClassVar[Axis] = "layer"

    def taps(self, anatomy: "Anatomy") -> Sequence[Tap]:  # noqa: ARG002
        return ()

    def read(self, at: Moment) -> Iterator[Reading]:
        found_layers = layers(at.model)
        reasons = [layer.why or self._too_large(layer.weight.shape) for layer in found_layers]
        usable = [layer.weight for layer, reason in zip(found_layers, reasons, strict=True) if not reason]
        known = iter(hosvd_conditions(usable) if usable else [])
        found: list[tuple[Condition, ...] | str] = [reason or next(known) for reason in reasons]
        heads = [modes if isinstance(modes, str) else headline(modes) for modes in found]
        remark = _dtypes(heads)
        yield profile("kappa", [kappa(head) for head in heads], remark=remark, empty=NONE)
        for mode in range(max((len(modes) for modes in found if not isinstance(modes, str)), default=0)):
            yield profile(f"kappa/mode{mode}", [kappa(_of_mode(modes, mode)) for modes in found], remark=remark)
        if heads:
            yield profile("kappa_kept", [number(head, lambda c: c.kappa_kept) for head in heads], remark=remark)
            yield profile("lost", [head if isinstance(head, str) else head.lost for head in heads], remark=remark)

    def _too_large(self, shape: Sequence[int]) -> str:
        rest = 1
        for size in shape:
            rest *= size
        side = max(min(size, rest // size) for size in shape)
        return f"its unfolding is {side:,} wide (largest_side is {self.largest_side:,})" * (side > self.largest_side)


def _of_mode(modes: tuple[Condition, ...] | str, mode: int) -> Condition | str:
    if isinstance(modes, str):
        return modes
    return modes[mode] if mode < len(modes) else f"the weight has {len(modes)} modes"


def _dtypes(found: Sequence[Condition | str]) -> str:
    names = dict.fromkeys(condition.dtype for condition in found if not isinstance(condition, str))
    return f"HOSVD in float64 of {', '.join(names)} weights" if names else ""
