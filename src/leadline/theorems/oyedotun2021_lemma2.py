"""Oyedotun et al., Lemma 2: X V is singular if V is.

Sides: the rank of X V, by its singular values; the dimension V loses, known by construction.
Needs: "singular" to mean that some u != 0 has V u = 0, as in the proof, or square matrices. By singular values, as in
eq. (8) and in the experiments, a product of rectangular matrices can be of full rank with a deficient V.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from leadline.theorems import Case, Statement
from leadline.theorems._draw import Draw
from leadline.theorems._rounding import norm, rounding

SHAPES = ((1, 1, 1), (4, 4, 4), (20, 20, 20), (9, 4, 4), (3, 6, 5), (5, 4, 7), (1, 2, 2))  # m, n, p of X (mxn), V (nxp)


def instances(draw: Draw) -> Iterator[tuple[str, Tensor, Tensor, int]]:
    """X, V and the rank of V, at most min(n, p) - 1."""
    for m, n, p in SHAPES:
        for rank in sorted({0, min(n, p) - 1}):
            x = draw.matrix(m, n, kappa=10.0)
            yield f"X {m}x{n}, V {n}x{p} of rank {rank}", x, draw.matrix(n, p, kappa=10.0, rank=rank), rank
    x, v = torch.tensor([[1.0, 0.0]]).double(), torch.tensor([[1.0, 0.0], [0.0, 0.0]]).double()
    yield "X = [1 0], V = diag(1, 0)", x, v, 1


def sigma_of_product(x: Tensor, v: Tensor) -> tuple[Tensor, float]:
    """Singular values of X V, as many as columns, and what rounding makes of a zero one."""
    size = max(*x.shape, *v.shape)
    sigma = torch.linalg.svdvals(x @ v)
    padding = torch.zeros(max(0, v.shape[1] - len(sigma))).double()
    return torch.cat([sigma, padding]), rounding(2 * size**2) * max(norm(x) * norm(v), rounding(1))


def null_vector(draw: Draw, *, lift: float = 0.0) -> Iterator[Case]:
    """p - rank(V) columns' worth of null space of V is also one of X V."""
    for what, x, v, rank in instances(draw):
        sigma, tolerance = sigma_of_product(x, v + lift * draw.normal(*v.shape))
        yield Case(what, float(sigma[rank]), tolerance)


def by_singular_values(draw: Draw) -> Iterator[Case]:
    """sigma_min over min(m, p) values, as in eq. (8), is zero."""
    for what, x, v, _ in instances(draw):
        sigma, tolerance = sigma_of_product(x, v)
        yield Case(what, float(sigma[min(len(x), v.shape[1]) - 1]), tolerance)


STATEMENTS = (
    Statement(
        part="null_vector",
        place="Lemma 2, in the sense of its proof",
        text="If V u = 0 for some u != 0, then X V u = 0: X V has no more rank than V.",
        check=null_vector,
        broken=lambda draw: null_vector(draw, lift=0.1),
    ),
    Statement(
        part="singular_values",
        place="Lemma 2, in the sense of eq. (8)",
        text="If the smallest of the min(n, p) singular values of V is zero, so is that of the min(m, p) of X V.",
        check=by_singular_values,
        note="with fewer rows than V has rank, X V is of full rank: X = [1 0], V = diag(1, 0). True of square matrices",
    ),
)
