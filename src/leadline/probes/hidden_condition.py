"""Condition numbers of the hidden representations, boundary by boundary: over the batch and over the channels.

    kappa(H_l) = sigma_max(H_l) / sigma_min(H_l)

`kappa/batch`: H_l is the n x N matrix with one flattened representation per column, which is also the batch mode of
its HOSVD; `kappa/channel`: channels x everything else. For both `rank/...` (sigma that are not lost) and
`kappa_kept/...` (kappa over those); `dead`: channels that are zero on every sample.

Reference: Oyedotun, Al Ismaeil, Aouada, Definition 2, eq. (8), Figs 9, 11, 13 (the paper does not say which mode).
Infinite means exactly singular (dead channels, repeated samples). A sigma at or below 4 eps(dtype) (sqrt m + sqrt n)
/ sqrt(max(m, n)) sigma_max is not told from zero; kappa is then a lower bound and the note says so.
Normal: 10 to 120 over a batch of 64 to 128, flat or falling along depth (ResNet-110 at initialisation, trained
ResNet-20 on the embedded digits). Infinite over the channels where units are dead, where a skip pads with zeros, where
a stem makes more channels than its patches have entries, and behind a layer norm, which fixes the mean: that is not
depth's doing, so `dead` and `rank` stand beside it. The paper's plain networks have no finite value for their first 70
to 80 layers (its Figs 9, 11).
Cost: one forward pass of at most `samples` samples, in the mode the model is in and without autocast. The Gram matrix
on the shorter side is taken inside the pass, so nothing is kept. For ResNet-110 0.8 training steps at batch 128 with
128 samples, 1.8 with 256.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from torch import Tensor

from leadline.core.when import Every, When
from leadline.linalg.conditioning import Condition, hidden_condition
from leadline.probes import Axis, Moment, Reading
from leadline.probes._channels import batch_first, channel_dims
from leadline.probes._passes import at_boundaries, batch_size, mode, no_chain, samples
from leadline.probes._readings import kappa, number, profile
from leadline.taps.tape import Tap

if TYPE_CHECKING:
    from leadline.taps.anatomy import Anatomy


@dataclass(frozen=True, kw_only=True)
class HiddenCondition:
    when: When = Every(200)
    samples: int = 256
    axis: ClassVar[Axis] = "boundary"

    def taps(self, anatomy: "Anatomy") -> Sequence[Tap]:  # noqa: ARG002
        return ()

    def read(self, at: Moment) -> Iterator[Reading]:
        inputs, dims = samples(at.inputs, self.samples), channel_dims(at)
        count = batch_size(inputs)

        def both(place: int, hidden: Tensor) -> tuple[Condition, Condition]:
            hidden, channel = batch_first(hidden, dims[place], count)
            return hidden_condition(hidden), hidden_condition(hidden, mode="channel", channel_dim=channel)

        found = at_boundaries(at, inputs, both)
        kinds = dict.fromkeys(pair[0].dtype for pair in found if not isinstance(pair, str))
        remark = f"{count} samples, {mode(at.model)} mode, {', '.join(kinds)}" if kinds else ""
        nothing = no_chain(at)
        for side, word in enumerate(("batch", "channel")):
            chosen = [pair if isinstance(pair, str) else pair[side] for pair in found]
            yield profile(f"kappa/{word}", [kappa(one) for one in chosen], remark=remark, empty=nothing)
            if found:
                yield profile(f"kappa_kept/{word}", [number(one, lambda c: c.kappa_kept) for one in chosen])
                yield profile(f"rank/{word}", [number(one, lambda c: c.rank) for one in chosen])
        if found:
            yield profile("dead", [pair if isinstance(pair, str) else float(pair[1].dead) for pair in found])
