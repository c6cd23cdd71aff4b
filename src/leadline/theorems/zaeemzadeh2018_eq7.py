"""Zaeemzadeh et al., eq. (7): the one value that all non-zero singular values must have to keep the gradient's norm.

Sides: E||W dy||^2 for an operator W whose non-zero singular values are sigma; E||dy||^2. Both exactly, as traces with
the covariance of dy.
Needs: eq. (7) nothing; its simplification sigma^2 = d / min(d, c) a gradient whose energy is the same in all
directions.
"""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from leadline.theorems import Aside, Case, Statement
from leadline.theorems._convolution import polar
from leadline.theorems._draw import Draw
from leadline.theorems._rounding import rounding

SHAPES = ((3, 8), (8, 3), (4, 4), (1, 6))  # c, d


def energies(operator: Tensor, covariance: Tensor) -> float:
    """E||W dy||^2 / E||dy||^2; W takes d to c channels."""
    return float(torch.trace(operator @ covariance @ operator.T) / torch.trace(covariance))


def check(draw: Draw, *, ratio_of: tuple[int, int] | None = None) -> Iterator[Case]:
    """sigma from eq. (7) for any covariance, of full and of deficient rank."""
    for c, d in SHAPES:
        basis = polar(draw.normal(c, d), 1.0)
        for rank in {min(c, d), 1}:
            operator = basis @ (p := _projector(basis, rank))
            for kappa in (1.0, 10.0):
                root = draw.matrix(d, d, kappa=kappa)
                covariance = root @ root.T
                inside = torch.trace(p @ covariance)
                sigma2 = ratio_of[0] / ratio_of[1] if ratio_of else float(torch.trace(covariance) / inside)
                error = abs(energies(sigma2**0.5 * operator, covariance) - 1)
                yield Case(
                    f"{c} from {d} channels, rank {rank}, kappa {kappa:g}", error, rounding(4 * d**2, 1 + sigma2)
                )


def _projector(basis: Tensor, rank: int) -> Tensor:
    """On `rank` of the directions that the isometry does not lose."""
    rows = torch.linalg.svd(basis)[2][:rank]
    projector: Tensor = rows.T @ rows
    return projector


def uniform(draw: Draw, *, power: float = 1.0) -> Iterator[Case | Aside]:
    """sigma^2 = d / min(d, c) for a gradient of covariance I; the asides for one that is not."""
    for c, d in SHAPES:
        operator = polar(draw.normal(c, d), (d / min(c, d)) ** (power / 2))
        error = abs(energies(operator, torch.eye(d).double()) - 1)
        yield Case(f"{c} from {d} channels", error, rounding(4 * d**2, d))
        root = draw.matrix(d, d, kappa=30.0)
        yield Aside(
            f"energy kept of a gradient with kappa 900, {c} from {d} channels", energies(operator, root @ root.T)
        )


STATEMENTS = (
    Statement(
        part="exact",
        place="eq. (7)",
        text="E||W dy||^2 = E||dy||^2 if sigma^2 is the energy of dy over that outside the null space of W.",
        check=check,
        broken=partial(check, ratio_of=(8, 3)),
    ),
    Statement(
        part="uniform",
        place="section 3, after eq. (7)",
        text="If the energy of dy is the same in all directions, that is sigma = sqrt(d / min(d, c)).",
        check=uniform,
        broken=partial(uniform, power=0.5),
    ),
)
