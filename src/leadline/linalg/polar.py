"""The nearest matrix whose singular values all equal a target: t U V^H for X = U S V^H (Procrustes, Gower).

Cold, from anywhere: the singular value decomposition in float64, at any scale and any kappa, with the rank. Warm, near
the target: X (I + E)^(-1/2) with E = X^H X / t^2 - I by its series to E^3, which turns |E| into about |E|^4 / 2 - one
or two rounds of matrix products where a training step has moved the matrix by a percent.

Zaeemzadeh et al. find (X^H X)^(-1/2) by the coupled iteration (9); `inverse_root` is that, for comparison.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from leadline.core.errors import UsageError
from leadline.linalg.conditioning import rounding_tolerance
from leadline.linalg.precision import widened

NEAR = 0.5  # |E| up to which the series is used; it converges below 1
ROUNDS = 4  # 0.5 -> 2e-2 -> 2e-9 -> rounding


@dataclass(frozen=True)
class Polar:
    """t U V^H and, per matrix, the rank of X; below min(m, n) other matrices are equally near."""

    nearest: Tensor
    rank: Tensor

    @property
    def unique(self) -> bool:
        return bool((self.rank == min(self.nearest.shape[-2:])).all())


def polar(matrix: Tensor, target: float = 1.0) -> Polar:
    """Cold start: for every real or complex matrix of (..., m, n), computed in float64.

    >>> found = polar(torch.tensor([[2e-30, 0.0], [0.0, 5e-30]]), target=3.0)
    >>> found.nearest.tolist(), found.rank.item()
    ([[3.0, 0.0], [0.0, 3.0]], 2)
    """
    _check(matrix, target)
    left, sigma, right = torch.linalg.svd(widened(matrix), full_matrices=False)
    shape = (matrix.shape[-2], matrix.shape[-1])
    floor = rounding_tolerance(shape, matrix.dtype) * sigma[..., :1]
    return Polar((target * left @ right).to(matrix), (sigma > floor).sum(-1))


def nearest(matrix: Tensor, target: float = 1.0) -> Tensor:
    """Warm start, in the precision of the matrix (at least float32); cold if some |E| of the batch is not small.

    |E|^2 <= |E^2|_F is at hand, and for the many small eigenvalues of a real step much sharper than |E|_F.
    """
    x = matrix.to(torch.promote_types(matrix.dtype, torch.float32)) / target
    tall = x.shape[-2] >= x.shape[-1]
    x = x if tall else x.mH
    eps = torch.finfo(x.dtype).eps
    for _ in range(ROUNDS):
        excess = x.mH @ x
        excess.diagonal(dim1=-2, dim2=-1).sub_(1)
        square = excess @ excess
        size = float(torch.linalg.matrix_norm(square).max()) ** 0.5
        if not size <= NEAR:
            return polar(matrix, target).nearest
        x = x + x @ (square @ (35 / 128 * square - 5 / 16 * excess) + 3 / 8 * square - excess / 2)
        if size**5 / 4 < 2 * eps:
            break
    return ((x if tall else x.mH) * target).to(matrix.dtype)


def inverse_root(gram: Tensor, *, steps: int = 10, scaled: bool = True) -> Tensor:
    """(X^H X)^(-1/2) by eq. (9): T = 3 I - Z Y, Y <- Y T / 2, Z <- T Z / 2 from Y = X^H X, Z = I.

    As printed (`scaled=False`) it converges only where every eigenvalue is below 3, which the method's own target
    d / c is not in a stem. Scaled, it starts from Y = X^H X / |X^H X|_F.
    """
    eye = torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
    scale = torch.linalg.matrix_norm(gram)[..., None, None] if scaled else torch.ones_like(gram.real[..., :1, :1])
    y, z = gram / scale, eye.expand_as(gram)
    for _ in range(steps):
        t = 3 * eye - z @ y
        y, z = y @ t / 2, t @ z / 2
    return z / scale.sqrt()


def _check(matrix: Tensor, target: float) -> None:
    if not (matrix.is_floating_point() or matrix.is_complex()) or matrix.ndim < 2 or matrix.numel() == 0:
        raise UsageError(f"expected matrices of real or complex numbers; got {matrix.dtype} {tuple(matrix.shape)}")
    if not (0 < target < math.inf):
        raise UsageError(f"expected a positive finite target; got {target}")
    bad = int((~torch.isfinite(matrix)).sum())
    if bad:
        raise UsageError(f"expected finite numbers; {bad} of {matrix.numel()} are NaN or infinite")
