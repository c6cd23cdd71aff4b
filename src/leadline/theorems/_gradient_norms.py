"""Gradient norms on both sides of every block of a network, by automatic differentiation."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from leadline.theorems._rounding import excess

Block = Callable[[Tensor], Tensor]


def run(blocks: Sequence[Block], x: Tensor) -> Tensor:
    for block in blocks:
        x = block(x)
    return x


def ratios(blocks: Sequence[Block], x: Tensor, slope: Tensor) -> Tensor:
    """||dE/dx_l|| / ||dE/dx_{l+1}|| for every block and sample (column of x), (L, samples); `slope` is dE/dx_{L+1}."""
    boundaries = [x.detach().requires_grad_()]
    for block in blocks:
        boundaries.append(block(boundaries[-1]))
    grads = torch.autograd.grad(boundaries[-1], boundaries, slope)
    norms = torch.stack([grad.norm(dim=0) for grad in grads])
    return norms[:-1] / norms[1:]


def outside(found: Tensor, delta: Tensor | float) -> float:
    """By how much 1 - delta <= ratio <= 1 + delta is violated at most."""
    return excess(((found - 1).abs() - delta).amax(), 0.0)
