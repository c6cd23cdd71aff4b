"""Oyedotun et al., Lemma 1: adding c I to a matrix shifts its eigenvalues by c and keeps its eigenvectors.

Sides: (W + c I) v; (lambda + c) v, for every eigenpair of W as computed. For symmetric W also the two sorted spectra.
Needs: nothing. With a diagonal of different numbers (DiracNet, eq. (28)) it is false; the aside says how far off.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from leadline.theorems import Aside, Case, Statement
from leadline.theorems._draw import Draw
from leadline.theorems._rounding import norm, rounding


def residuals(matrix: Tensor, shift: Tensor, c: float) -> float:
    """max over eigenpairs of W of ||(W + diag(shift)) v - (lambda + c) v|| / (||W|| + |c|), ||v|| = 1."""
    values, vectors = torch.linalg.eig(matrix)
    off = (matrix + torch.diag(shift)).to(vectors) @ vectors - vectors * (values + c)
    return float(off.norm(dim=0).amax()) / (norm(matrix) + abs(c) or 1.0)


def check(draw: Draw, *, spread: float = 0.0) -> Iterator[Case | Aside]:
    for n in (1, 3, 12, 40):
        jordan = torch.diag(torch.ones(n - 1).double(), 1) + 2 * torch.eye(n).double()
        kinds = {"random": draw.normal(n, n), "zero": 0 * jordan, "identity": torch.eye(n).double(), "Jordan": jordan}
        for what, matrix in kinds.items():
            for c in (0.0, 1.0, -1e3):
                shift = c + spread * draw.normal(n)
                yield Case(f"{what}, n={n}, c={c:g}", residuals(matrix, shift, c), rounding(4 * n**2))
        symmetric = draw.normal(n, n)
        symmetric = symmetric + symmetric.T
        shifted = torch.linalg.eigvalsh(symmetric + torch.diag(1 + spread * draw.normal(n)))
        gap = (shifted - torch.linalg.eigvalsh(symmetric) - 1).abs().amax()
        yield Case(f"sorted spectra, n={n}", float(gap) / (norm(symmetric) + 1), rounding(4 * n**2))
    varied = residuals(draw.normal(12, 12), 1 + 0.1 * draw.normal(12), 1.0)
    yield Aside("diag(1 + 0.1 N(0, 1)) in the place of I, relative residual, n=12", varied)


STATEMENTS = (
    Statement(
        place="Lemma 1",
        text="(W + c I) v = (lambda + c) v whenever W v = lambda v.",
        check=check,
        broken=lambda draw: check(draw, spread=0.1),
    ),
)
