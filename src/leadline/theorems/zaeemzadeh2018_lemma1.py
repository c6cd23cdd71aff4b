"""Zaeemzadeh et al., Lemma 1: the singular values of I + M are within ||M|| of 1.

Sides: sigma_min(I + M) and sigma_max(I + M); 1 - sigma_max(M) and 1 + sigma_max(M).
Needs: nothing; for a singular I + M the lower bound is trivial, since then sigma_max(M) >= 1.
"""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from leadline.theorems import Case, Statement
from leadline.theorems._draw import Draw
from leadline.theorems._rounding import excess, largest, norm, rounding


def instances(draw: Draw, n: int) -> Iterator[tuple[str, Tensor]]:
    eye = torch.eye(n).double()
    for size in (1e-9, 0.3, 1.0, 100.0):
        matrix = draw.normal(n, n)
        yield f"random, ||M|| = {size:g}", matrix * size / norm(matrix)
    yield "zero", 0 * eye
    yield "M = -I", -eye
    yield "M = -I/2", -eye / 2
    yield "rank 1", draw.matrix(n, n, kappa=1.0, rank=1) / 2
    yield "nilpotent", torch.diag(torch.ones(n - 1).double(), 1) / 2


def check(draw: Draw, *, radius: bool = False) -> Iterator[Case]:
    """`radius` puts the spectral radius in the place of sigma_max(M)."""
    for n in (1, 2, 7, 30):
        for what, matrix in instances(draw, n):
            size = float(torch.linalg.eigvals(matrix).abs().amax()) if radius else norm(matrix)
            sigma = torch.linalg.svdvals(torch.eye(n).double() + matrix)
            violated = largest([excess(1 - size, sigma[-1]), excess(sigma[0], 1 + size)])
            yield Case(f"{what}, n={n}", violated / (1 + norm(matrix)), rounding(4 * n**2))


STATEMENTS = (
    Statement(
        place="Lemma 1",
        text="1 - sigma_max(M) <= sigma_min(I + M) <= sigma_max(I + M) <= 1 + sigma_max(M).",
        check=check,
        broken=partial(check, radius=True),
    ),
)
