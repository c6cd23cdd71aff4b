"""Oyedotun et al., Proposition 1: matrices of independent uniform or Gaussian entries are almost surely non-singular.

Sides: the share of drawn matrices with a column in the span of the others, by the distance of each column from that
span; the claimed share 0. Twice: the distances by projection, and as 1 / ||row i of W^-1||.
Needs: a law without atoms. The asides say how often matrices of a few discrete values are singular.
"""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from leadline.theorems import Aside, Case, Statement
from leadline.theorems._draw import Draw
from leadline.theorems._rounding import kappa, rounding

TRIALS = 200
SIZES = (1, 2, 5, 20)
Law = Callable[[Draw, int], Tensor]

CONTINUOUS: dict[str, Law] = {
    "Gaussian": lambda draw, n: draw.normal(TRIALS, n, n),
    "Gaussian, mean 5, deviation 0.01": lambda draw, n: 5 + 0.01 * draw.normal(TRIALS, n, n),
    "uniform": lambda draw, n: draw.uniform(TRIALS, n, n, low=-1e-3, high=1e-3),
}
SIGNS: dict[str, Law] = {"signs": lambda draw, n: draw.sign(TRIALS, n, n)}


def distances(matrices: Tensor) -> Tensor:
    """||w_i - projection on the span of the others|| / ||w_i||, by least squares, (trials, n)."""
    n = matrices.shape[-1]
    found = []
    for i in range(n):
        column = matrices[:, :, i : i + 1]
        others = matrices[:, :, [j for j in range(n) if j != i]]
        q = torch.linalg.qr(others)[0] if n > 1 else others
        rest = column - q @ (q.mT @ column)
        found.append((rest - q @ (q.mT @ rest)).norm(dim=(1, 2)) / column.norm(dim=(1, 2)))
    return torch.stack(found, dim=1)


def singular_share(matrices: Tensor) -> float:
    """The share with a column that is within rounding of the span of the others."""
    return float((distances(matrices).amin(1) <= rounding(matrices.shape[-1] ** 2)).double().mean())


def check(draw: Draw, *, laws: dict[str, Law] = CONTINUOUS) -> Iterator[Case | Aside]:
    for what, law in laws.items():
        for n in SIZES:
            matrices = law(draw, n)
            yield Case(f"singular share, {what}, n={n}", singular_share(matrices), 0.0)
    for n in (2, 5, 10):
        yield Aside(f"singular share of matrices of signs, n={n}", singular_share(draw.sign(TRIALS, n, n)))
    yield Aside("largest kappa of 200 Gaussian matrices, n=20", max(map(kappa, draw.normal(TRIALS, 20, 20))))


def two_ways(draw: Draw, *, twist: float = 0.0) -> Iterator[Case]:
    """The distance of w_i from the span of the others is 1 / ||e_i^T W^-1||."""
    for n in SIZES:
        matrix = draw.normal(1, n, n)
        left = distances(matrix)[0] * matrix[0].norm(dim=0)
        right = 1 / torch.linalg.inv(matrix[0] + twist * torch.eye(n).double()).norm(dim=1)
        yield Case(f"n={n}", float(((left - right) / right).abs().amax()), rounding(4 * n**2, kappa(matrix[0])))


STATEMENTS = (
    Statement(
        part="probability",
        place="Proposition 1, eq. (6), and Corollary 1",
        text="No column of a matrix of independent uniform or Gaussian entries lies in the span of the others.",
        check=check,
        broken=lambda draw: check(draw, laws=SIGNS),
        note=f"{TRIALS} matrices of each law and size; non-singular does not mean well-conditioned",
    ),
    Statement(
        part="distance",
        place="appendix A1",
        text="Lying outside the span and being invertible are one thing: the distance of w_i is 1 / ||e_i^T W^-1||.",
        check=two_ways,
        broken=lambda draw: two_ways(draw, twist=0.1),
    ),
)
