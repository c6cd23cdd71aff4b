"""DenseNEst: a network that keeps its features side by side, and the ResNEst it equals (Chen et al., section 4)."""

from collections.abc import Sequence
from copy import deepcopy
from itertools import accumulate
from typing import cast

import torch
from torch import Tensor, nn

from leadline.models.chain import Chain, Input
from leadline.models.estimators import ResNEst, residual_blocks, resnest
from leadline.models.linear_maps import BottleneckCondition, linear_head, matrix, other_parameters, parameters_under
from leadline.models.residual import Dense


class Leading(nn.Module):
    """Q on the first `width` channels: Q_i([Pi_0 ... Pi_{i-1}]^T x), eq. (42)."""

    def __init__(self, function: nn.Module, width: int) -> None:
        super().__init__()
        self.function, self.width = function, width

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.function(x[:, : self.width].contiguous())
        return out


class DenseNEst(Chain):
    """x_i = [x_{i-1}, Q_i(x_{i-1})], x_0 = x, y = W_{L+1} x_L (eqs. (8), (9)): all features reach the head unmixed.

    `functions` are the Q_i, from M_{i-1} = N_in + D_1 + ... + D_{i-1} to D_i = `sizes` channels.
    """

    def __init__(self, functions: Sequence[nn.Module], sizes: Sequence[int], *, outputs: int, takes: Input) -> None:
        blocks = {f"block{i}": Dense(function) for i, function in enumerate(functions, start=1)}
        self.sizes = tuple(sizes)
        super().__init__(nn.Identity(), blocks, linear_head(takes.channels + sum(sizes), outputs, takes), takes=takes)

    def features(self, x: Tensor) -> dict[str, Tensor]:
        """v_0 = x and v_i = Q_i(x_{i-1}), by name."""
        found = {"v0": x}
        for i, (block, size) in enumerate(zip(self.blocks, self.sizes, strict=True), start=1):
            x = block(x)
            found[f"v{i}"] = x[:, -size:]
        return found

    def prediction_weights(self) -> dict[str, nn.Parameter]:
        """W_{L+1}."""
        return parameters_under(self, "head")

    def feature_finding_weights(self) -> dict[str, nn.Parameter]:
        """phi = {theta_i}: all other weights."""
        return other_parameters(self, self.prediction_weights())

    def bottleneck(self) -> BottleneckCondition:
        """That of the equal ResNEst, which always meets it."""
        return self.to_resnest().bottleneck()

    @torch.no_grad()
    def to_resnest(self) -> ResNEst:
        """The equal ResNEst (Prop. 4): M = M_L, W_i = Pi_i puts v_i in its own place, G_i reads the places before."""
        widths = list(accumulate(self.sizes, initial=self.takes.channels))  # M_0, ..., M_L
        functions = [
            Leading(deepcopy(block.get_submodule("branch")), width)
            for block, width in zip(self.blocks, widths, strict=False)
        ]
        last = matrix(self.head)
        equal = resnest(functions, self.sizes, width=widths[-1], outputs=len(last), takes=self.takes).to(last)
        maps = (equal.stem, *(block.part("last") for block in residual_blocks(equal)))
        identity = torch.eye(widths[-1])
        for layer, start, stop in zip(maps, [0, *widths], widths, strict=False):
            weight = cast(Tensor, layer.weight)
            weight.copy_(identity[:, start:stop].reshape(weight.shape))
        equal.head = deepcopy(self.head)
        return equal.train(self.training)
