"""A-ResNEst heads: every residual branch's feature speaks for itself in the prediction, y + sum_i H_i v_i.

Changes: the model's prediction y gets a linear head H_i on each feature v_i = G_i(x_{i-1}), what the last layer W_i of
branch i reads, and H_0 on the input v_0 where it is images or vectors (Chen et al., eq. (4)); features of images and
tokens are averaged to the prediction's shape. Heads start at zero, so that the first prediction is y, bit for bit.
`replace=True` is eq. (4) itself: y is left out, and with it W_L and W_{L+1}.
Helps: residual nets too narrow for their features, M < sum K_i (coupling loss epsilon > 0, diminishing feature reuse;
Chen et al., section 3.2): H_i can weigh v_i without changing the features after it, which W_i cannot. And every block
gets a gradient of its own, whatever the blocks behind it do to theirs.
Costs: classes x K_i numbers per branch (with a bias), the average of one feature map each; old checkpoints load with
`strict=False`: the heads are new, all other names stay.
Undone: by taking away the heads and the hooks that feed them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from leadline.remedies._treatment import Treatment
from leadline.taps.places import Place

NAME = "a_resnest_heads"


class Heads(nn.ModuleDict):
    """sum_i H_i v_i from features gathered on their way through the model, each averaged to (batch, ..., K_i)."""

    def __init__(self, *, replace: bool) -> None:
        super().__init__()
        self.replace = replace
        self.found: dict[str, Tensor] = {}

    def forward(self, y: Tensor) -> Tensor:
        """The augmented prediction; a branch that did not run this time (stochastic depth) has no say."""
        found, self.found = self.found, {}
        total = torch.stack([self[name](v) for name, v in found.items()]).sum(0).to(y.dtype)
        return total if self.replace else y + total

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "found": {}}


class Gather:
    """Keeps the feature at one place for its head: its channels last, averaged over all axes but the first `axes`."""

    def __init__(self, heads: Heads, name: str, *, channel: int, axes: int) -> None:
        self.heads, self.name, self.channel, self.axes = heads, name, channel, axes

    def __call__(self, v: Tensor) -> None:
        if torch._C._current_graph_task_id() != -1:
            return  # checkpointing runs the layer again in the backward pass
        v = v.movedim(self.channel, -1)
        self.heads.found[self.name] = v.flatten(self.axes, -2).mean(self.axes) if v.ndim > self.axes + 1 else v


@dataclass(frozen=True)
class Feature:
    """Where v_i is met, which of its axes has the K_i channels, and how many these are."""

    place: Place
    channel: int
    size: int


def apply(at: Treatment, *, replace: bool = False) -> str:
    """`replace` leaves the model's own prediction out."""
    y = next((met for met in at.wiring.trace.root.outputs if met.value == at.wiring.end), None)
    last = at.wiring.last_layer
    if y is None or last is None or y.tensor.ndim not in (2, 3):
        shape = "no tensor" if y is None else f"a tensor of shape {tuple(y.tensor.shape)}"
        return f"it returns {shape}, not scores of (samples, classes) or (samples, tokens, classes)"
    features = list(_features(at, y.tensor))
    if not features:
        return "no block has a skip, and beside it a layer whose input a module reads"
    axes, heads = y.tensor.ndim - 1, Heads(replace=replace)
    inputs = _inputs(at, y.tensor)
    for index, feature in enumerate([*inputs, *features], start=1 - len(inputs)):
        name = f"H{index}"
        heads[name] = nn.Linear(feature.size, y.tensor.shape[-1], device="meta").to_empty(device="cpu")
        at.at(feature.place, Gather(heads, name, channel=feature.channel, axes=axes))
        at.say(feature.place.module, "a head on its input")
    for parameter in heads.parameters():
        nn.init.zeros_(parameter)
    at.attach(last.name, NAME, heads, like=next(last.module.parameters()))
    prediction = at.wiring.trace.place(at.wiring.trace.root, "out", y)
    at.at(prediction, heads)
    at.say(str(prediction), "now only the heads' sum" if replace else "with the heads' sum added")
    return ""


def _inputs(at: Treatment, y: Tensor) -> list[Feature]:
    """v_0, if the model takes one tensor that a linear map can read."""
    root = at.wiring.trace.root
    taken = [met for met in root.inputs if met.value in at.wiring.flow.position]
    if len(taken) != 1 or not _fits(taken[0].tensor, y):
        return []
    channel = 1 if taken[0].tensor.ndim >= 4 else -1
    return [Feature(at.wiring.trace.place(root, "in", taken[0]), channel, taken[0].tensor.shape[channel])]


def _features(at: Treatment, y: Tensor) -> Iterator[Feature]:
    """v_i of every branch in order, each once."""
    joins = (join for block in at.anatomy.blocks for join in at.wiring.joins(block))
    layers = [act.owner for join in joins for act in at.wiring.acts(join, weighs=True) if act.weighs]
    for name in dict.fromkeys(layers):
        calls = [call for call in at.wiring.trace.calls if call.name == name and at.wiring.is_leaf(call)]
        met = next((m for call in calls for m in call.inputs if m.value in at.wiring.flow.position), None)
        if met is None or len(calls) > 1:
            at.leave(name, "called several times" if calls else "no module call reads its input")
        elif not _fits(met.tensor, y):
            at.leave(name, "its samples or tokens are not those of the prediction")
        else:
            channel = 1 if isinstance(calls[0].module, _ConvNd) else -1
            yield Feature(at.wiring.trace.place(calls[0], "in", met), channel, met.tensor.shape[channel])


def _fits(v: Tensor, y: Tensor) -> bool:
    """The same samples, and for predictions per token the same tokens."""
    return v.ndim > 1 and len(v) == len(y) and (y.ndim == 2 or (v.ndim == 3 and v.shape[1] == y.shape[1]))
