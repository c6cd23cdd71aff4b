"""How far apart two sides are, and how far rounding alone may take them.

One rounding changes a number by at most EPS / 2 of it. `rounding(steps)` allows `steps` of them in a row on either
side; a product of n x n matrices counts n^2 (n roundings in each entry, n between the entries and the spectral norm),
an SVD, eigenvalues or a solution 4 n^2. `growth` is how much the rest of the computation may magnify them (condition
numbers, mostly). No tolerance comes from looking at an error.
"""

import math
from collections.abc import Iterable

import torch
from torch import Tensor

EPS = torch.finfo(torch.float64).eps


def rounding(steps: float, growth: float = 1.0) -> float:
    """steps * EPS * growth."""
    return steps * EPS * growth


def apart(left: Tensor, right: Tensor, *, scale: Tensor | float = 1.0) -> float:
    """||left - right|| / scale, Frobenius; absolute where the scale is zero."""
    size = float(scale)
    return float(torch.linalg.vector_norm(left - right)) / (size if size else 1.0)


def excess(left: Tensor | float, right: Tensor | float, *, scale: Tensor | float = 1.0) -> float:
    """By how much left <= right is violated: (left - right) / scale where that is positive, NaN where it is NaN."""
    beyond = (float(left) - float(right)) / (float(scale) or 1.0)
    return beyond if beyond > 0 or math.isnan(beyond) else 0.0


def strictly(less: Tensor | float, more: Tensor | float) -> float:
    """The error of less < more: 0 if it is true, 1 if not, NaN where either is NaN."""
    gap = float(more) - float(less)
    return math.nan if math.isnan(gap) else float(gap <= 0)


def unless(true: bool) -> float:
    """The error of a claim about what is not a number: 0 if it is true, 1 if not."""
    return float(not true)


def largest(errors: Iterable[float]) -> float:
    """The largest, or NaN if there is one among them (which `max` would lose)."""
    return float(torch.tensor(list(errors), dtype=torch.float64).amax())


def norm(matrix: Tensor) -> float:
    """The spectral norm; zero for an empty matrix."""
    return float(torch.linalg.matrix_norm(matrix, 2)) if matrix.numel() else 0.0


def kappa(matrix: Tensor) -> float:
    """sigma_max / sigma_min over min(m, n) singular values, inf if one is exactly zero."""
    sigma = torch.linalg.svdvals(matrix)
    return float(sigma[0] / sigma[-1])
