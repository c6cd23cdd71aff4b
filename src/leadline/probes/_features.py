"""The features v_0, ..., v_L of a network: what the last layer of every residual branch weighs, found in the graph.

A residual network adds W_i v_i to its representation, x_i = x_{i-1} + W_i v_i (Chen et al., eq. (1)), so v_i is what
enters the last layer of block i's branch, and v_0 what enters the layer that makes x_0 (or x_0 itself). Where a skip
has a layer P of its own, x_i = P z_i + W_i v_i, and z_i takes the place of all features before. Features of images and
sequences are averaged over their positions, as the heads of an A-ResNEst do. All in evaluation mode.
"""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from leadline.core.errors import LeadlineError, UsageError
from leadline.models.densenest import DenseNEst
from leadline.models.estimators import AugmentedResNEst
from leadline.probes import Moment
from leadline.probes._channels import batch_first, channel_dims
from leadline.probes._passes import batch_size, listen, no_chain, own_pass, require_graph, samples, training_samples
from leadline.taps.dataflow import Flow, Value, ancestry, operation, order, value_of
from leadline.taps.inputs import Inputs
from leadline.taps.places import Path, leaves
from leadline.taps.skips import SCALES, SUMS, VIEWS, Layers

CHUNK = 64
"""Samples in one pass, whose graph is held."""

AFFINE = SUMS | SCALES | VIEWS | {"batchnorm", "avgpool2d", "constantpadnd", "mean", "slice", "roll"}
"""What may happen to a sum of W_i v_i without bending it; batch norm in evaluation mode."""


@dataclass(frozen=True)
class Feature:
    """v_i (samples, K_i), z_i where the skip has a layer, and the operations that bend the sum afterwards."""

    v: Tensor
    z: Tensor | None = None
    bent_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Features:
    """`first` is v_0 (samples, K_0); `blocks` has one entry per block, or the reason why it has no feature.

    `ends` are x_0, ..., x_L averaged over positions; none for an estimator whose output is affine in all features.
    `output` has every floating-point tensor that the model returned, `loss` is the loss function's mean over samples.
    """

    first: Tensor
    blocks: list[Feature | str]
    ends: list[Tensor]
    output: dict[Path, Tensor]
    loss: float
    targets: Tensor | None = None

    @property
    def count(self) -> int:
        return len(self.first)

    def affine(self, gaps: Collection[int]) -> tuple[list[Tensor], str]:
        """The features that (2) holds for, as far as blocks add them, and a word on where that begins.

        `gaps` are the blocks after which something else is computed.
        """
        if not self.ends:
            return [self.first, *(one.v for one in self.blocks if isinstance(one, Feature))], ""
        found: list[Tensor] = []
        for place in reversed(range(len(self.blocks))):
            block = self.blocks[place]
            if isinstance(block, str) or block.bent_by or place in gaps:
                return [self.ends[place + 1], *found], f"from the output of block {place + 1} on"
            found.insert(0, block.v)
            if block.z is not None:
                return [block.z, *found], f"from the projection in block {place + 1} on"
        return [self.first, *found], ""


def pooled(tensor: Tensor, channel: int) -> Tensor:
    """(samples, channels): the mean over all other axes; the batch axis is in front."""
    if tensor.is_complex():
        raise UsageError(f"features are {str(tensor.dtype).removeprefix('torch.')}, not real floating point")
    channel %= tensor.ndim
    others = [axis for axis in range(1, tensor.ndim) if axis != channel]
    return tensor.detach().mean(others) if others else tensor.detach()


def features(at: Moment, count: int) -> Features:
    """Those of about `count` training samples; a UsageError says why there are none."""
    if not at.anatomy.blocks:
        raise UsageError(no_chain(at))
    batches = [part for whole in training_samples(at, count) for part in _parts(whole)]
    if batches:
        require_graph(at, batches[0])
    read = _of_estimator if isinstance(at.model, AugmentedResNEst | DenseNEst) else _of_graph
    passes = [read(at, inputs) for inputs in batches]
    if not passes:
        raise UsageError("there are no samples")
    return Features(
        first=torch.cat([one.first for one in passes]),
        blocks=[_joined(parts) for parts in zip(*(one.blocks for one in passes), strict=True)],
        ends=[torch.cat(parts) for parts in zip(*(one.ends for one in passes), strict=True)],
        output={path: torch.cat([one.output[path] for one in passes]) for path in passes[0].output},
        targets=joined_targets(batches),
        loss=sum(one.loss * one.count for one in passes) / sum(one.count for one in passes),
    )


def _parts(inputs: Inputs) -> Iterator[Inputs]:
    for start in range(0, batch_size(inputs), CHUNK):
        yield samples(inputs, CHUNK, start=start)


def joined_targets(batches: Sequence[Inputs]) -> Tensor | None:
    """The targets of all samples, where there is a tensor of them."""
    found = [inputs.targets for inputs in batches]
    whole = bool(found) and all(isinstance(one, Tensor) and one.ndim for one in found)
    return torch.cat(found) if whole else None


def _joined(parts: Sequence[Feature | str]) -> Feature | str:
    known = [part for part in parts if isinstance(part, Feature)]
    if len(known) < len(parts):
        return next(part for part in parts if isinstance(part, str))
    zs = [part.z for part in known if part.z is not None]
    return Feature(torch.cat([part.v for part in known]), torch.cat(zs) if zs else None, known[0].bent_by)


def _of_estimator(at: Moment, inputs: Inputs) -> Features:
    """The network knows its features by name; its output is affine in them."""
    model = at.model
    assert isinstance(model, AugmentedResNEst | DenseNEst)
    with own_pass(model, evaluate=True):
        found, output = model.features(*inputs.args), inputs.call(model)
        loss = _loss(at, inputs, output)
    named = {f"blocks.{name}": f"v{number}" for number, name in enumerate(model.block_names, start=1)}
    vs = {name: pooled(v, 1) for name, v in found.items()}
    blocks = [
        Feature(vs[named[block.name]]) if block.name in named else "it is no block of the estimator"
        for block in at.anatomy.blocks
    ]
    return Features(vs["v0"], blocks, [], _returned(output), loss)


def _of_graph(at: Moment, inputs: Inputs) -> Features:
    heard = _Pass(at, inputs)
    return Features(heard.first, heard.blocks, heard.ends, heard.output, heard.loss)


def _loss(at: Moment, inputs: Inputs, output: Any) -> float:
    """NaN where the loss function cannot be asked."""
    if at.loss_fn is None or inputs.targets is None:
        return math.nan
    with torch.no_grad():
        return float(at.loss_fn(output, inputs.targets))


def _returned(output: Any) -> dict[Path, Tensor]:
    return {path: tensor.detach() for path, tensor in leaves(output) if tensor.is_floating_point()}


class _Pass:
    """One pass of a few samples with its graph, which is let go of at the end."""

    def __init__(self, at: Moment, inputs: Inputs) -> None:
        self.at, self.inputs, self.count = at, inputs, batch_size(inputs)
        self.dims = channel_dims(at)
        self.edges: dict[int, Value | None] = {}
        self.values: dict[int, Tensor] = {}
        self.first, self.output, self.loss = torch.empty(0), dict[Path, Tensor](), math.nan
        self.blocks: list[Feature | str] = []
        blocks = at.anatomy.blocks
        places = [*at.anatomy.boundaries, *(block.input for block in blocks)]
        found, _ = listen(at, inputs, places, self._meet, gradients=True, evaluate=True, then=self._follow)
        missing = [one for one in found[: len(blocks) + 1] if isinstance(one, str)]
        if missing or not self.blocks:
            raise UsageError(missing[0] if missing else "autograd does not follow the model")
        self.ends = [self.values[place] for place in range(len(blocks) + 1)]

    def _meet(self, place: int, tensor: Tensor) -> bool:
        self.edges[place] = value_of(tensor)
        if place <= len(self.at.anatomy.blocks):
            self.values[place] = pooled(*batch_first(tensor, self.dims[place], self.count))
        return True

    def _follow(self, output: Any) -> None:
        known = [edge for edge in self.edges.values() if edge is not None]
        if not known:
            return
        everything, count = ancestry(max(known, key=order)), len(self.at.anatomy.blocks)
        self.first = self._first(self.edges.get(0))
        for block in range(count):
            start, end = self.edges.get(count + 1 + block), self.edges.get(block + 1)
            self.blocks.append(
                self._feature(Flow(everything, [start]), start, end) if start and end else "not followed"
            )
        self.output, self.loss = _returned(output), _loss(self.at, self.inputs, output)

    def _first(self, edge: Value | None) -> Tensor:
        """What the layer that makes x_0 weighs, or x_0 itself."""
        try:
            return self._weighed(edge) if edge is not None else self.values[0]
        except UsageError:
            return self.values[0]

    def _feature(self, flow: Flow, start: Value, end: Value) -> Feature | str:
        layers, between = Layers(flow), flow.between(start, end)
        try:
            last, passed, skipped = _last_layers(flow, layers, start, end)
            if not last or not (skipped or len(last) > 1):
                return "a plain block adds no feature to what it is given"
            depth = layers.depth(flow, between)
            deepest = max(depth[value] for value in last)
            branch = [value for value in last if skipped or depth[value] == deepest]
            skip = [value for value in last if value not in branch]
            v = torch.cat([self._weighed(value) for value in branch], dim=1)
            z = torch.cat([self._weighed(value) for value in skip], dim=1) if skip else None
            return Feature(v, z, tuple(name for name in passed if name not in AFFINE))
        except (LeadlineError, RuntimeError) as error:
            return str(error).splitlines()[0]

    def _weighed(self, value: Value) -> Tensor:
        """What enters a layer, averaged over positions: (samples, channels)."""
        node = value[0]
        kept = [name for name in ("_saved_input", "_saved_mat1", "_saved_self") if hasattr(node, name)]
        if operation(value) not in ("convolution", "linear") or not kept:
            raise UsageError(f"what its last layer ({operation(value)}) weighs is not known")
        entering: Tensor | None = getattr(node, kept[0])
        if entering is None or len(entering) % self.count:
            raise UsageError("what its last layer weighs does not count the samples")
        if operation(value) == "convolution":
            return pooled(entering, 1)
        return pooled(entering.reshape(self.count, -1, entering.shape[-1]), 2)


def _last_layers(flow: Flow, layers: Layers, start: Value, end: Value) -> tuple[list[Value], list[str], bool]:
    """The layers after which no other comes, what is passed behind them, and whether the start is reached so."""
    found, passed, skipped = list[Value](), dict[str, None](), False
    stack, seen = [end], {end}
    while stack:
        value = stack.pop()
        if value == start:
            skipped = True
        elif layers.is_layer(value):
            found.append(value)
        else:
            inside = flow.inside(value)
            if operation(value) in SCALES and len(inside) > 1:
                raise UsageError("its branch is multiplied by another value, which is no layer's work")
            if operation(value) == "cat":
                raise UsageError("it concatenates instead of adding")
            passed[operation(value)] = None
            stack += [parent for parent in dict.fromkeys(inside) if parent not in seen]
            seen.update(inside)
    return found, list(passed), skipped


def too_many(width: int, count: int) -> str:
    """Why a fit on so many features says nothing; empty if it may say something."""
    return f"{width + 1} features on {count} samples predict anything" if width + 1 >= count else ""
