"""Linear maps inside a network: their matrices, the bottleneck condition and the rank behind Assumption 4."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from leadline.linalg.conditioning import matrix_condition
from leadline.models.chain import Input
from leadline.models.heads import pooled_linear
from leadline.models.layers import activation as make_activation
from leadline.models.layers import sequence
from leadline.models.residual import Residual


@dataclass(frozen=True)
class BottleneckCondition:
    """M >= sum_{i<L} K_i is necessary for Assumption 4; a full column rank of [W_0 ... W_{L-1}] is what it asks."""

    width: int
    sizes: tuple[int, ...]
    rank: int
    tolerance: float

    @property
    def needed(self) -> int:
        """sum K_i."""
        return sum(self.sizes)

    @property
    def holds(self) -> bool:
        """M >= sum K_i."""
        return self.width >= self.needed

    @property
    def unique(self) -> bool:
        """Assumption 4: the features can be recovered from x_{L-1} in one way only."""
        return self.rank == self.needed

    def __str__(self) -> str:
        condition = f"M = {self.width} {'>=' if self.holds else '<'} sum K_i = {self.needed}"
        verdict = "holds" if self.unique else "fails"
        return f"{condition}; [W_0 ... W_L-1] has rank {self.rank} of {self.needed}: Assumption 4 {verdict}"


def matrix(module: nn.Module) -> Tensor:
    """The matrix W of a linear map; of a k x k convolution the one at zero frequency, which acts on spatial means."""
    *_, layer = (part for part in module.modules() if isinstance(part, nn.Conv2d | nn.Linear))
    return layer.weight.sum((2, 3)) if isinstance(layer, nn.Conv2d) else layer.weight


def added_maps(stem: nn.Module, blocks: Sequence[Residual]) -> dict[str, nn.Module]:
    """The maps whose outputs add up to the last x_i, by what they weigh: v0, ..., vL, or z{i}, v{i}, ..., vL.

    A projection in a skip puts x_i = P z_i + W_i v_i in the place of x_0 = W_0 v_0, and (2) holds from there on.
    """
    maps = {"v0": stem}
    for i, block in enumerate(blocks, start=1):
        if block.skip is None:
            maps = {}
        elif not isinstance(block.skip, nn.Identity):
            maps = {f"z{i}": block.skip}
        maps[f"v{i}"] = block.part("last")
    return maps


def bottleneck_condition(maps: Sequence[nn.Module]) -> BottleneckCondition:
    """M, K_i and the rank of the maps W_0, ..., W_{L-1} beside each other."""
    weights = [matrix(module).detach() for module in maps]
    condition = matrix_condition(torch.cat(weights, dim=1))
    sizes = tuple(weight.shape[1] for weight in weights)
    return BottleneckCondition(weights[0].shape[0], sizes, condition.rank, condition.tolerance)


def parameters_under(model: nn.Module, *paths: str) -> dict[str, nn.Parameter]:
    begins = tuple(f"{path}." for path in paths)
    return {name: parameter for name, parameter in model.named_parameters() if name.startswith(begins)}


def other_parameters(model: nn.Module, these: Mapping[str, nn.Parameter]) -> dict[str, nn.Parameter]:
    return {name: parameter for name, parameter in model.named_parameters() if name not in these}


def linear_head(channels: int, outputs: int, takes: Input) -> nn.Module:
    return nn.Linear(channels, outputs, bias=False) if takes.size is None else pooled_linear(channels, outputs)


def linear_map(channels: int, width: int, takes: Input) -> nn.Linear | nn.Conv2d:
    """A linear map of vectors, or of the channels at every pixel."""
    return nn.Linear(channels, width, bias=False) if takes.size is None else nn.Conv2d(channels, width, 1, bias=False)


def activated_layer(c_in: int, c_out: int, *, activation: str, takes: Input) -> nn.Module:
    """One affine layer, on images a 3x3 convolution, and its activation."""
    affine = nn.Linear(c_in, c_out) if takes.size is None else nn.Conv2d(c_in, c_out, 3, padding=1)
    return sequence(affine=affine, act=make_activation(activation))
