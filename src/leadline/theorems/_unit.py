"""The residual unit of Li et al., Lemma 1, that moves one column."""

import math

import torch
from torch import Tensor


def unit(column: Tensor, target: Tensor, rho: float) -> tuple[Tensor, Tensor, float]:
    """W^1, W^2 and b of eqs. (15)-(17); a move of no distance has no weights.

    The column is of length one up to rounding; dividing by its square keeps that rounding from growing along a network.
    """
    d_x, d = len(column), float((target - column).norm())
    first, last = torch.zeros(2, d_x, d_x).double()
    if d == 0:
        return first, last, 0.0
    first[0] = math.sqrt(8 * d) / rho * column / column.square().sum()
    last[:, 0] = math.sqrt(8 / d) / rho * (target - column)
    return first, last, math.sqrt(8 * d) / rho * (rho**2 / 8 - 1)
