"""Chen et al., Theorem 1: a wide ResNEst with bottleneck blocks has no bad local minima in its prediction weights.

Sides: the risk at critical points of (P_phi) that Newton's method finds from random starts; the minimum of (PA_phi).
Needs: Assumptions 2, 3 and 4: a convex loss, M >= N_o, independent columns of [W_0 ... W_{L-1}].
"""

from collections.abc import Iterator
from functools import partial

import torch

from leadline.theorems import Aside, Case, Statement
from leadline.theorems._draw import Draw
from leadline.theorems._resnest import LOSSES, Basis, bases, local_minimum, lowest, resnest
from leadline.theorems._rounding import kappa

STARTS = 2


def check(draw: Draw, *, width: int | None = None) -> Iterator[Case | Aside]:
    """`width` takes one ResNEst of that width instead of those that meet the assumptions."""
    nets = bases(draw) if width is None else iter([(f"M={width}", resnest(draw, width=width))])
    for what, basis in nets:
        for name, loss in LOSSES.items():
            least = lowest(basis, loss)
            for _ in range(STARTS):
                weights = local_minimum(basis, draw, loss)
                error = abs(float(basis.risk(weights, loss)) - least) / basis.scale
                yield Case(f"{name}, {what}", error, basis.tolerance)
            yield Aside(f"kappa of W_(L+1) at the minimum, {name}, {what}", kappa(basis.split(weights)[1]))


def heads(draw: Draw, *, width: int | None = None) -> Iterator[Case]:
    """The proof's correspondence: H_i = W_{L+1} W_i are the minimising heads of (PA_phi), squared loss."""
    nets = bases(draw) if width is None else iter([(f"M={width}", resnest(draw, width=width))])
    for what, basis in nets:
        found = basis.heads(local_minimum(basis, draw))
        best = torch.linalg.lstsq(basis.stacked.T, basis.y.T, driver="gelsd").solution.T
        error = float((found - best).norm() / best.norm())
        yield Case(what, error, basis.tolerance * _amplified(basis))


def _amplified(basis: Basis) -> float:
    """A gradient of rounding size moves the heads by 1 / sigma_min^2 of the features, and of W_0 ... W_{L-1}."""
    return (kappa(basis.stacked) * kappa(basis.columns)) ** 2


STATEMENTS = (
    Statement(
        part="risk",
        place="Theorem 1 (a), (b)",
        text="Every local minimum of (P_phi), and every critical point with W_{L+1} of full rank, has epsilon = 0.",
        check=check,
        broken=partial(check, width=3),
    ),
    Statement(
        part="heads",
        place="Theorem 1, proof",
        text="There H_i = W_{L+1} W_i solve (PA_phi).",
        check=heads,
        broken=partial(heads, width=3),
    ),
)
