"""Oyedotun et al., Lemma 3: X V is non-singular if X and V are.

Sides: sigma_min(X V), from the product; sigma_min(X) sigma_min(V), from the factors.
Needs: "non-singular" to mean that no u != 0 is sent to zero, as in the proof, or square matrices. By singular values,
as in eq. (8), a wide X of full rank can be blind to all that a tall V of full rank returns.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from leadline.theorems import Case, Statement
from leadline.theorems._draw import Draw
from leadline.theorems._rounding import excess, norm, rounding, strictly

SQUARE_OR_TALL = ((1, 1, 1), (4, 4, 4), (20, 20, 20), (9, 4, 4), (9, 6, 2))  # m >= n >= p of X (mxn), V (nxp)


def sigma_min(matrix: Tensor) -> Tensor:
    """The smallest of min(m, n) singular values."""
    sigma: Tensor = torch.linalg.svdvals(matrix)
    return sigma[-1]


def injective(draw: Draw, *, turn: bool = False) -> Iterator[Case]:
    """sigma_min(X V) >= sigma_min(X) sigma_min(V) where both are injective."""
    for m, n, p in SQUARE_OR_TALL:
        for kappa in (1.0, 1e3):
            x, v = draw.matrix(m, n, kappa=kappa), draw.matrix(n, p, kappa=kappa)
            x = x - x @ v[:, :1] @ v[:, :1].T / v[:, :1].square().sum() if turn else x
            bound = kappa**-2 if turn else sigma_min(x) * sigma_min(v)
            yield Case(
                f"X {m}x{n}, V {n}x{p}, kappa {kappa:g}",
                excess(bound, sigma_min(x @ v), scale=bound),
                rounding(2 * m**2, norm(x) * norm(v) / float(bound)),
            )


def by_singular_values(draw: Draw) -> Iterator[Case]:
    """X and V of full rank: is the smallest of the min(m, p) singular values of X V above rounding?"""
    for m, n, p in (*SQUARE_OR_TALL, (2, 6, 2)):
        x, v = draw.matrix(m, n, kappa=10.0), draw.matrix(n, p, kappa=10.0)
        yield _full_rank(f"random X {m}x{n}, V {n}x{p}", x, v)
    e = torch.eye(2).double()
    yield _full_rank("X = [1 0], V = [0 1]^T", e[:1], e[:, 1:])


def _full_rank(what: str, x: Tensor, v: Tensor) -> Case:
    return Case(what, strictly(rounding(2 * max(x.shape) ** 2) * norm(x) * norm(v), sigma_min(x @ v)), 0.0)


STATEMENTS = (
    Statement(
        part="injective",
        place="Lemma 3, in the sense of its proof",
        text="If X u = 0 and V u = 0 only for u = 0, so it is with X V: sigma_min(X V) >= sigma_min(X) sigma_min(V).",
        check=injective,
        broken=lambda draw: injective(draw, turn=True),
    ),
    Statement(
        part="singular_values",
        place="Lemma 3, in the sense of eq. (8)",
        text="If no singular value of X and of V is zero, none of the min(m, p) of X V is.",
        check=by_singular_values,
        note="true of almost all rectangular matrices, not of all: X = [1 0], V = [0 1]^T gives 0",
    ),
)
