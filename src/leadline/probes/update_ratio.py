"""How far a step moved the weights of each layer, as a part of their norm.

    ratio_i = ||W_i(t+1) - W_i(t)||_F / ||W_i(t)||_F

over the whole step: optimiser, weight decay and projections.

Reference: a practitioners' rule of thumb; beside the weight norms of Li, Jiao, Han, Weissman, Figs 2 and 3.
Normal: around 1e-3. Below 1e-5 a layer stands still, above 1e-1 it jumps.
Cost: a copy of the weights for the time of the step, and two passes over them.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from leadline.core.when import Every, When
from leadline.probes import Axis, Moment, Reading
from leadline.probes._layers import NONE, layers
from leadline.probes._readings import Found, Noted, missing, profile
from leadline.probes._spread import fetched
from leadline.taps.anatomy import Anatomy
from leadline.taps.reductions import FROBENIUS
from leadline.taps.tape import Tap


@dataclass(frozen=True, kw_only=True)
class UpdateRatio:
    when: When = Every(100)
    axis: ClassVar[Axis] = "layer"

    def taps(self, anatomy: Anatomy) -> Sequence[Tap]:  # noqa: ARG002
        return ()

    def before(self, model: nn.Module) -> dict[str, Tensor]:
        return {layer.name: layer.weight.clone() for layer in layers(model) if not layer.why}

    def read(self, at: Moment) -> Iterator[Reading]:
        if at.before is None:
            yield missing("ratio", "no step was made")
            return
        kept: Mapping[str, Tensor] = at.before
        found = layers(at.model)
        moved = _norms([layer.weight - kept[layer.name] for layer in found if layer.name in kept])
        ratios = dict(zip(kept, map(_ratio, moved, _norms(list(kept.values()))), strict=True))
        yield profile("ratio", [layer.why or ratios[layer.name] for layer in found], empty=NONE)


def _norms(tensors: Sequence[Tensor]) -> list[float]:
    return [float(FROBENIUS.merge([part])) for part in fetched([FROBENIUS.map(tensor) for tensor in tensors])]


def _ratio(moved: float, size: float) -> Found:
    if not (math.isfinite(moved) and math.isfinite(size)):
        return "some of the weights are not finite"
    if size == 0:
        return Noted(math.inf, "the weights were zero") if moved else "the weights were zero and stayed so"
    return moved / size
