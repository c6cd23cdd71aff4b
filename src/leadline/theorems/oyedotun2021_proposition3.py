"""Oyedotun et al., Proposition 3: how much a solution moves with its data is bounded by the condition number.

Sides: ||W' - W|| / ||W|| for the least-squares solutions W = Y X^+ and W' = Y (X + dX)^+ of one layer; the bound
kappa(X) ||dX|| / ||X||. Spectral norms.
Needs: one linear layer (the proof has no other), Y = W X exactly, X of full row rank, and a small dX.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from leadline.theorems import Case, Statement
from leadline.theorems._draw import Draw
from leadline.theorems._rounding import excess, kappa, norm, rounding

SHAPES = ((1, 1), (4, 4), (4, 12))  # n, N
KAPPA = 10.0


def moved(y: Tensor, x: Tensor, dx: Tensor) -> float:
    """||dW|| / ||W||."""
    before, after = y @ torch.linalg.pinv(x), y @ torch.linalg.pinv(x + dx)
    return norm(after - before) / norm(before)


def weakest(x: Tensor, size: float) -> Tensor:
    """The dX of norm `size` sigma_min that lowers sigma_min: -size sigma_n u_n v_n^T."""
    u, sigma, vt = torch.linalg.svd(x, full_matrices=False)
    dx: Tensor = -size * sigma[-1] * u[:, -1:] @ vt[-1:]
    return dx


def interpolating(draw: Draw, *, finite: bool = True) -> Iterator[Case]:
    """With Y = W X: ||dW|| / ||W|| <= k d / (1 - k d), k = kappa(X), d = ||dX|| / ||X||, for all k d < 1."""
    for n, samples in SHAPES:
        x, w = draw.matrix(n, samples, kappa=KAPPA), draw.normal(n, n)
        sigma_min = norm(x) / kappa(x)
        for size in (1e-4, 1e-2, 0.5, 0.9):
            random = draw.normal(n, samples)
            for what, dx in (("random", random * size * sigma_min / norm(random)), ("worst", weakest(x, size))):
                share = kappa(x) * norm(dx) / norm(x)
                bound = share / (1 - share) if finite else share
                tolerance = rounding(4 * samples**2, kappa(x) ** 2 / (1 - share) / bound)
                yield Case(
                    f"{what} dX, kappa ||dX|| / ||X|| = {size:g}, {n}x{samples}",
                    excess(moved(w @ x, x, dx), bound, scale=bound),
                    tolerance,
                )


def with_residual(draw: Draw) -> Iterator[Case]:
    """Eq. (27) to first order, ||dX|| = 1e-5 sigma_min, where the optimal W does not fit Y: the residual R adds to dW.

    dX = t u_n r^T, with r the strongest right singular vector of R, moves W by t R r u_n^T / sigma_n^2.
    """
    n, samples = SHAPES[-1]
    for noise in (0.0, 1.0, 10.0):
        x, w = draw.matrix(n, samples, kappa=KAPPA), draw.normal(n, n)
        y = w @ x + noise * draw.normal(n, samples)
        residual = y - y @ torch.linalg.pinv(x) @ x
        r = torch.linalg.svd(residual if noise else x)[2][:1]
        u = torch.linalg.svd(x)[0][:, -1:]
        dx = 1e-5 * norm(x) / kappa(x) * u @ r
        bound = kappa(x) * norm(dx) / norm(x)
        tolerance = 2e-5 + rounding(4 * samples**2, kappa(x) ** 2 / bound)
        yield Case(f"residual {noise:g}", excess(moved(y, x, dx), bound, scale=bound), tolerance)


def printed(draw: Draw) -> Iterator[Case]:
    yield from interpolating(draw, finite=False)
    yield from with_residual(draw)


STATEMENTS = (
    Statement(
        part="printed",
        place="Proposition 3, eqs. (27), (51)",
        text="||dW|| / ||W|| <= kappa(X) ||dX|| / ||X|| for the optimal W.",
        check=printed,
        note="not for finite dX (already of 1x1 matrices), nor to first order where the optimum leaves a residual; "
        "the second-order allowance of the first-order cases is 2e-5",
    ),
    Statement(
        part="corrected",
        place="appendix A4",
        text="If Y = W X, X has full row rank and k d < 1: ||dW|| / ||W|| <= k d / (1 - k d).",
        check=interpolating,
        broken=lambda draw: interpolating(draw, finite=False),
        note="k = kappa(X), d = ||dX|| / ||X||; as dX vanishes this is eq. (27)",
    ),
)
