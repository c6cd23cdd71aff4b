"""Norm-preserving transitions: all singular values of the layers that change the shape set to sqrt(d / min(c, d)).

Changes: the layer in the skip of every block that changes the shape, and layers that do so alone (a downsampling
between stages), from c inputs to d outputs each: their weights become the nearest ones that keep the gradient's norm
(Zaeemzadeh et al., eqs. (7), (8)); other blocks keep it by their identity. With an optimiser given, they are put back
there after every `every`-th step (Algorithm 1), else once, as a better start.
Helps: gradients that leap at the transitions alone, badly scaled skips. A norm behind such a layer undoes the scale,
which then is said; the rest of the block is not touched.
Costs: products of the size of each weight after a step. A kernel whose patches overlap (3x3 at stride 2) is more than
one matrix and left alone; `leadline.projections.Procrustes` keeps such kernels, too.
Undone: the weights get the values they had, and the optimiser is let go.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from leadline.core.errors import UsageError
from leadline.linalg.polar import nearest, polar
from leadline.remedies._treatment import Treatment
from leadline.remedies._wiring import Act, is_norm

CLOSE = 1e-5  # |sigma / t - 1| of a weight that is where it should be

Layer = nn.Linear | nn.Conv1d | nn.Conv2d | nn.Conv3d


def apply(at: Treatment, *, every: int = 1) -> str:
    """`every` is how many steps of the optimiser lie between two projections."""
    if not isinstance(every, int) or every < 1:
        raise UsageError(f"every={every!r}: expected a whole number of steps, 1 or more")
    upkeep, seen = Upkeep(every), set[int]()
    for act, note in _transitions(at):
        layer = at.model.get_submodule(act.owner)
        if why := _obstacle(layer):
            at.leave(act.owner, why)
        elif isinstance(layer, Layer) and id(layer.weight) not in seen:
            seen.add(id(layer.weight))
            _project(at, act.owner, layer, note=note)
            if at.optimizer is not None:
                at.say(act.owner, "kept there after " + ("each step" if every == 1 else f"every {every} steps"))
                upkeep.layers.append(layer)
    if at.optimizer is not None and upkeep.layers:
        at.surgery.later(at.optimizer.register_step_post_hook(upkeep).remove)
    return "its transitions preserve norms already" if seen else "no layer of its own changes the shape between blocks"


@dataclass
class Upkeep:
    """Puts weights back after every `every`-th step of an optimiser."""

    every: int
    layers: list[Layer] = field(default_factory=list)
    steps: int = 0

    @torch.no_grad()
    def __call__(self, *_: object) -> None:
        self.steps += 1
        if self.steps % self.every == 0:
            for layer in self.layers:
                layer.weight.copy_(nearest(matrices(layer), target(layer)).view_as(layer.weight))


def matrices(layer: Layer) -> Tensor:
    """(groups, d / groups, inputs): what a layer whose patches do not overlap multiplies each of them by."""
    return layer.weight.detach().reshape(_groups(layer), len(layer.weight) // _groups(layer), -1)


def target(layer: Layer) -> float:
    """t = sqrt(d / rank): the norm of a gradient spread evenly over the outputs is kept (eq. (7))."""
    _, rows, columns = matrices(layer).shape
    return float((rows / min(rows, columns)) ** 0.5)


def _groups(layer: Layer) -> int:
    return 1 if isinstance(layer, nn.Linear) else layer.groups


def _project(at: Treatment, name: str, layer: Layer, *, note: str) -> None:
    ratios = torch.linalg.svdvals(matrices(layer).double()) / target(layer)
    low, high = float(ratios.min()), float(ratios.max())
    if max(1 - low, high - 1) > CLOSE:
        at.surgery.write(layer.weight, polar(matrices(layer), target(layer)).nearest.view_as(layer.weight))
        at.say(name, f"singular values {low:.2g} to {high:.2g} of the norm-preserving ones, now 1{note}")


def _transitions(at: Treatment) -> Iterator[tuple[Act, str]]:
    """The layers in skips that change the shape and those that do so alone; and what is to be said about each."""
    head = at.wiring.last_layer
    for block in at.anatomy.blocks:
        for join in at.wiring.joins(block) if block.kind == "transition" else ():
            acts = at.wiring.skip_acts(join)
            normed = any(is_norm(at.model.get_submodule(act.owner)) for act in acts)
            yield from ((act, " (a norm behind it sets the scale)" * normed) for act in acts if act.weighs)
        alone = at.wiring.lone_act(block) if block.kind == "plain" and block.in_shape != block.out_shape else None
        if alone is not None and (head is None or alone.owner != head.name):
            yield alone, ""


def _obstacle(layer: nn.Module) -> str:
    if not isinstance(layer, Layer):
        return f"it is a {type(layer).__name__}"
    if parametrize.is_parametrized(layer, "weight"):
        return "its weight is computed from other parameters"
    if not isinstance(layer, nn.Linear):
        axes = zip(layer.kernel_size, layer.dilation, layer.stride, strict=True)
        if any(k > 1 and d * (k - 1) >= s for k, d, s in axes):
            return "its patches overlap (leadline.projections.Procrustes keeps such kernels)"
    return "" if layer.weight.any() else "its weights are zero, to which all others are equally near"
