"""DenseNEsts of random weights, block by block (Chen et al., eqs. (8), (9)); samples are columns."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from leadline.theorems._draw import Draw
from leadline.theorems._resnest import OUTPUTS, SAMPLES

INPUTS = 4
HIDDEN = 6


@dataclass(frozen=True)
class DenseNEst:
    """x_i = [x_{i-1}; Q_i(x_{i-1})], Q_i(x) = tanh(B_i relu(A_i x)), y = W_{L+1} x_L."""

    layers: tuple[tuple[Tensor, Tensor], ...]
    head: Tensor

    def block(self, i: int, x: Tensor) -> Tensor:
        """Q_i, i from 1."""
        a, b = self.layers[i - 1]
        return torch.tanh(b @ torch.relu(a @ x))

    def features(self, x: Tensor) -> list[Tensor]:
        """v_0 = x, v_1, ..., v_L."""
        found = [x]
        for i in range(1, len(self.layers) + 1):
            found.append(self.block(i, torch.cat(found)))
        return found

    def output(self, x: Tensor) -> Tensor:
        return self.head @ torch.cat(self.features(x))

    def data(self, draw: Draw) -> tuple[Tensor, Tensor]:
        """Inputs, and targets that are in part linear in them."""
        x = draw.normal(INPUTS, SAMPLES)
        return x, draw.normal(OUTPUTS, INPUTS) @ x + torch.sin(draw.normal(OUTPUTS, INPUTS) @ x)


def densenest(draw: Draw, growth: Sequence[int]) -> DenseNEst:
    """D_1, ..., D_L = `growth`."""
    layers, width = [], INPUTS
    for size in growth:
        layers.append((draw.normal(HIDDEN, width) / math.sqrt(width), draw.normal(size, HIDDEN)))
        width += size
    return DenseNEst(tuple(layers), draw.normal(OUTPUTS, width))
