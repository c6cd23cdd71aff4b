"""A norm in front of the head: what the last linear layer reads gets mean zero and variance one.

Changes: the last layer with weights gets a part `norm`, called on its input: a batch norm where the features are
vectors or maps, a layer norm where they are tokens. It starts with gain 1 and bias 0. This one norm is what a
BN-ResNEst has and a ResNEst has not; at a rate of 0.1 only the first can be trained (Chen et al., appendix B).
Helps: residual nets without norm, whose output's variance grows with depth (Li et al., section 4.1), and heads that
start with a large loss.
Costs: two numbers per feature to train and, with batch norm, a batch to be normalised by. Old checkpoints load with
`strict=False`: the norm is new, all other names stay.
Undone: by taking away the norm and the hook that calls it.
"""

import re

from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from leadline.core.errors import UsageError, unknown
from leadline.remedies._treatment import Treatment
from leadline.remedies._wiring import Wiring, is_norm
from leadline.taps.dataflow import Value, operation
from leadline.taps.skips import SUMS

NORMS = ("batch", "layer")
_BATCH: dict[int, type[nn.Module]] = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d, 5: nn.BatchNorm3d}


def apply(at: Treatment, *, norm: str | None = None) -> str:
    """`norm` is "batch" or "layer"."""
    if norm not in (None, *NORMS):
        raise unknown("norm", str(norm), NORMS)
    call = at.wiring.last_layer
    met = next((met for met in call.inputs if met.value in at.wiring.flow.position), None) if call else None
    if call is None or met is None or met.value is None or at.wiring.trace.times[call.name] > 1:
        return "no layer that is called once was found at its end"
    if not isinstance(call.module, nn.Linear | _ConvNd):
        return f"its last layer, {call.name}, is neither linear nor a convolution but a {type(call.module).__name__}"
    if _is_normalised(at.wiring, met.value):
        return f"what {call.name} reads comes from a norm already"
    new = _norm(norm, met.tensor, on_channels=isinstance(call.module, _ConvNd))
    at.attach(call.name, "norm", new, like=call.module.weight)
    at.at(at.wiring.trace.place(call, "in", met), new)
    at.say(call.name, f"reads its input through a new {type(new).__name__}")
    return ""


def _is_normalised(wiring: Wiring, value: Value) -> bool:
    """Only activations, pooling, views and the like come between the value and a norm."""
    given = {met.value for call in wiring.trace.calls if is_norm(call.module) for met in call.outputs}
    while value not in given and not re.search("(batch|layer|group|instance|rms)norm", operation(value)):
        before = set(wiring.flow.inside(value))
        if len(before) != 1 or operation(value) in SUMS or wiring.is_layer(value):
            return False
        (value,) = before
    return True


def _norm(kind: str | None, features: Tensor, *, on_channels: bool) -> nn.Module:
    shape = tuple(features.shape)
    if on_channels:
        return nn.GroupNorm(1, shape[1]) if kind == "layer" else _BATCH[len(shape)](shape[1])
    if kind == "batch" and len(shape) > 2:
        raise UsageError(f"norm='batch': the head reads tokens of shape {shape}; expected norm='layer'")
    return nn.LayerNorm(shape[-1]) if kind == "layer" or len(shape) > 2 else nn.BatchNorm1d(shape[-1])
