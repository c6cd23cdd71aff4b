"""Chen et al., Proposition 1: (P_phi) is neither convex nor concave, and has no local maxima.

Sides: extreme eigenvalues of the Hessian by automatic differentiation; curvatures in closed form along directions
that the proof suggests.
Needs: the squared loss and Assumption 1, V_L Y^T != 0 and V_L V_L^T of full rank.
"""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from leadline.linalg.hessian import dense_hessian
from leadline.theorems import Case, Statement
from leadline.theorems._draw import Draw
from leadline.theorems._resnest import Basis, bases
from leadline.theorems._rounding import excess, norm, rounding, strictly


def extremes(basis: Basis, weights: Tensor) -> tuple[float, float]:
    values = torch.linalg.eigvalsh(dense_hessian(basis.risk, weights))
    return float(values[0]), float(values[-1])


def negative_curvature(basis: Basis, w_l: Tensor, z: Tensor) -> float:
    """At W_{L+1} = 0 along (s Z^T Y V_L^T, Z), s = ||Z X_L||^2 / ||Z^T Y V_L^T||^2: -||Z X_L||^2 / N over length^2."""
    v, x = basis.features[-1], basis.hidden + w_l @ basis.features[-1]
    direction = z.T @ basis.y @ v.T
    energy = (z @ x).square().sum()
    s = energy / direction.square().sum().clamp(min=1e-300)
    return float(-energy / x.shape[1] / (z.square().sum() + (s * direction).square().sum()))


def indefinite(draw: Draw, *, orthogonal: bool = False) -> Iterator[Case]:
    """On W_{L+1} = 0; `orthogonal` takes out of Y what V_L explains, against Assumption 1."""
    for what, basis in bases(draw):
        if orthogonal:
            v = basis.features[-1]
            basis = Basis(basis.maps, basis.features, basis.y - basis.y @ v.pinverse() @ v)
        m, k, outputs = len(basis.maps[0]), len(basis.features[-1]), len(basis.y)
        w_l = draw.normal(m, k)
        low, high = extremes(basis, torch.cat([w_l.flatten(), torch.zeros(outputs * m).double()]))
        steps, size = float((m * (k + outputs)) ** 2), max(high, -low)
        bound = negative_curvature(basis, w_l, draw.normal(outputs, m))
        yield Case(f"lowest eigenvalue <= closed form, {what}", excess(low, bound, scale=size), rounding(steps))
        yield Case(f"lowest eigenvalue < 0, {what}", strictly(low, -rounding(steps) * size), 0.0)
        yield Case(f"largest eigenvalue > 0, {what}", strictly(rounding(steps) * size, high), 0.0)


def no_maximum(draw: Draw, *, times: float = 1.0) -> Iterator[Case]:
    """lambda_max >= max(||W_{L+1}||^2 ||V_L||^2, ||X_L||^2) / N > 0 everywhere."""
    for what, basis in bases(draw):
        m, k, outputs = len(basis.maps[0]), len(basis.features[-1]), len(basis.y)
        v = basis.features[-1]
        for place, size in (("random", 1.0), ("small", 1e-6), ("zero", 0.0)):
            weights = size * draw.normal(m * k + outputs * m)
            w_l, w_out = basis.split(weights)
            bound = max((norm(w_out) * norm(v)) ** 2, norm(basis.hidden + w_l @ v) ** 2) / v.shape[1]
            _, high = extremes(basis, weights)
            steps = float((m * (k + outputs)) ** 2)
            yield Case(
                f"{place} weights, {what}", excess(times * bound, high, scale=bound), rounding(steps, high / bound)
            )


STATEMENTS = (
    Statement(
        part="a",
        place="Proposition 1 (a)",
        text="The risk has an indefinite Hessian wherever W_{L+1} = 0: it is non-convex and non-concave.",
        check=indefinite,
        broken=partial(indefinite, orthogonal=True),
    ),
    Statement(
        part="b",
        place="Proposition 1 (b)",
        text="The Hessian always has a positive eigenvalue: a critical point that is no local minimum is a saddle.",
        check=no_maximum,
        broken=partial(no_maximum, times=100.0),
    ),
)
