"""Residual nonlinear estimators: networks whose output is linear in their features (Chen et al. 2021).

A block adds W_i v_i to the residual representation, v_i = G_i(x_{i-1}) (eq. (1)), so that
y = W_{L+1} sum_i W_i v_i (eq. (2)). `ResNEst` is that network, `AugmentedResNEst` gives each feature weights H_i of
its own (eq. (4)).
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import cast

import torch
from torch import Tensor, nn

from leadline.models.chain import Chain, Input
from leadline.models.layers import sequence
from leadline.models.linear_maps import (
    BottleneckCondition,
    added_maps,
    bottleneck_condition,
    linear_head,
    linear_map,
    matrix,
    other_parameters,
    parameters_under,
)
from leadline.models.residual import Residual


class ResNEst(Chain):
    """y = W_{L+1} x_L, x_i = x_{i-1} + W_i G_i(x_{i-1}), x_0 = W_0 x: W_0 is the stem, W_{L+1} the head.

    Each block's `branch.feature` is G_i and its `branch.last` W_i.
    """

    def walk(self, x: Tensor) -> Iterator[tuple[Residual, Tensor, Tensor]]:
        """Each block with what enters its branch and skip, z_i, and its feature v_i."""
        x = self.stem(x)
        for block in residual_blocks(self):
            z = block.before(x)
            v: Tensor = block.part("feature")(z)
            yield block, z, v
            x = block.join(block.part("last")(v), z)

    def features(self, x: Tensor) -> dict[str, Tensor]:
        """v_0 = x and v_i = G_i(x_{i-1}), by name."""
        return {"v0": x} | {f"v{i}": v for i, (_, _, v) in enumerate(self.walk(x), start=1)}

    def terms(self, x: Tensor) -> dict[str, Tensor]:
        """W_i v_i for every map of `added_maps`; their sum is x_L."""
        found = {"v0": self.stem(x)}
        for i, (block, z, v) in enumerate(self.walk(x), start=1):
            if not isinstance(block.skip, nn.Identity):
                found = {} if block.skip is None else {f"z{i}": block.skip(z)}
            found[f"v{i}"] = block.part("last")(v)
        return found

    def expanded(self, x: Tensor) -> Tensor:
        """The right-hand side of eq. (2), W_{L+1} sum_i W_i v_i(x)."""
        out: Tensor = self.head(torch.stack(list(self.terms(x).values())).sum(0))
        return out

    def prediction_weights(self) -> dict[str, nn.Parameter]:
        """W_L, W_{L+1} and the last skip's projection, if any: all that can change without changing a feature."""
        last = self.boundary_names[-1]
        return parameters_under(self, f"{last}.branch.last", f"{last}.skip", "head")

    def feature_finding_weights(self) -> dict[str, nn.Parameter]:
        """phi = {W_{i-1}, theta_i}: all other weights."""
        return other_parameters(self, self.prediction_weights())

    def bottleneck(self) -> BottleneckCondition:
        """M against sum K_i, i < L, and the rank behind Assumption 4, where (2) holds."""
        *maps, _ = added_maps(self.stem, residual_blocks(self)).values()
        return bottleneck_condition(maps)

    def augmented(self) -> "AugmentedResNEst":
        """The A-ResNEst on a copy of this network's feature-finding weights; its prediction weights H_i are new."""
        return AugmentedResNEst(
            deepcopy(self.stem),
            {name: deepcopy(block) for name, block in zip(self.block_names, residual_blocks(self), strict=True)},
            outputs=matrix(self.head).shape[0],
            takes=self.takes,
        )


def residual_blocks(model: Chain) -> list[Residual]:
    """The blocks that add; not the last one of an A-ResNEst."""
    return [block for block in model.blocks if isinstance(block, Residual)]


class AugmentedResNEst(Chain):
    """y = sum_i H_i v_i (eq. (4)), H_i the heads `head.H0`, ..., `head.HL`; W_L and W_{L+1} are gone.

    Every block but the last returns (x_i, v_i), the last one v_L. Features of images are averaged over their pixels.
    """

    def __init__(self, stem: nn.Module, blocks: Mapping[str, Residual], *, outputs: int, takes: Input) -> None:
        sizes = [takes.channels, *(matrix(block.part("last")).shape[1] for block in blocks.values())]
        heads = nn.ModuleDict({f"H{i}": linear_head(size, outputs, takes) for i, size in enumerate(sizes)})
        *tapped, final = blocks
        for name in tapped:
            blocks[name].tapped = True
        feature = sequence(pre=blocks[final].pre, branch=sequence(feature=blocks[final].part("feature")))
        self.lost_projection = blocks[final].kind == "transition"
        super().__init__(stem, {**blocks, final: feature}, heads, takes=takes)

    def forward(self, x: Tensor) -> Tensor:
        features = self.features(x).values()
        return torch.stack([head(v) for head, v in zip(self.heads.values(), features, strict=True)]).sum(0)

    @property
    def heads(self) -> nn.ModuleDict:
        """H_0, ..., H_L."""
        return cast(nn.ModuleDict, self.head)

    def features(self, x: Tensor) -> dict[str, Tensor]:
        """v_0 = x and v_i = G_i(x_{i-1}), by name."""
        self.takes.check(x)
        found, x = [x], self.stem(x)
        for step in self.steps(_collect):
            x, *features = step(x)
            found += features
        return {f"v{i}": v for i, v in enumerate(found)}

    def prediction_weights(self) -> dict[str, nn.Parameter]:
        """H_0, ..., H_L."""
        return parameters_under(self, "head")

    def feature_finding_weights(self) -> dict[str, nn.Parameter]:
        """phi = {W_{i-1}, theta_i}: all other weights."""
        return other_parameters(self, self.prediction_weights())

    def bottleneck(self) -> BottleneckCondition:
        """M against sum K_i, i < L, and the rank of [W_0 ... W_{L-1}], where (2) would hold."""
        return bottleneck_condition(list(added_maps(self.stem, residual_blocks(self)).values()))

    def weighted_layers(self) -> list[str]:
        """The layers on the longest path; H_L counts for W_L and W_{L+1} (and a counted projection beside W_L)."""
        *_, final = self.heads
        layers = [name for name in super().weighted_layers() if not name.startswith("head.")]
        return layers + [f"head.{final}"] * (2 + (self.counts_skips and self.lost_projection))


def _collect(modules: Sequence[nn.Module], x: Tensor) -> tuple[Tensor, ...]:
    """Through the blocks of an A-ResNEst: the last representation, and the features on the way."""
    features = []
    for module in modules:
        out = module(x)
        x, v = out if isinstance(out, tuple) else (out, out)
        features.append(v)
    return (x, *features)


def resnest(functions: Sequence[nn.Module], sizes: Sequence[int], *, width: int, outputs: int, takes: Input) -> ResNEst:
    """The vector-valued ResNEst of eqs. (1) and (2) on any functions G_i from M = `width` to K_i = `sizes` channels.

    On images every W_i is a 1x1 convolution, the matrix at each pixel, and the head averages over the pixels first.
    """
    blocks = {
        f"block{i}": Residual(sequence(feature=function, last=linear_map(size, width, takes)))
        for i, (function, size) in enumerate(zip(functions, sizes, strict=True), start=1)
    }
    return ResNEst(linear_map(takes.channels, width, takes), blocks, linear_head(width, outputs, takes), takes=takes)
