"""Chen et al., eq. (13): the Hessian of a ResNEst's squared risk in its prediction weights.

Sides: automatic differentiation of the risk (43) in vec(W_L^T), vec(W_{L+1}^T); the Kronecker blocks of eq. (13) with
their prefactor.
Needs: the risk that belongs to the prefactor. (43) has 1/2N, as in the derivation of appendix A.9, and 1/N in front of
its Hessian; 2/N belongs to (1/N) sum ||y_hat - y||^2.
"""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from leadline.linalg.hessian import dense_hessian
from leadline.theorems import Case, Statement
from leadline.theorems._draw import Draw
from leadline.theorems._resnest import Basis, bases
from leadline.theorems._rounding import apart, rounding


def kron(a: Tensor, b: Tensor) -> Tensor:
    """The Kronecker product, of matrices of any strides."""
    return (a[:, None, :, None] * b[None, :, None, :]).reshape(a.shape[0] * b.shape[0], a.shape[1] * b.shape[1])


def claimed(basis: Basis, weights: Tensor) -> Tensor:
    """Eq. (13) without its prefactor."""
    w_l, w_out = basis.split(weights)
    v, x = basis.features[-1], basis.hidden + w_l @ basis.features[-1]
    delta = (w_out @ x - basis.y).T  # columns delta_j
    eye_m, eye_o = torch.eye(len(w_l)).double(), torch.eye(len(w_out)).double()
    e = torch.cat([kron(eye_m, (v @ each)[:, None]) for each in delta.T], dim=1)
    corner = kron(w_out.T, v @ x.T) + e
    top = torch.cat([kron(w_out.T @ w_out, v @ v.T), corner], dim=1)
    return torch.cat([top, torch.cat([corner.T, kron(eye_o, x @ x.T)], dim=1)])


def check(draw: Draw, *, numerator: float, risk: float = 1.0) -> Iterator[Case]:
    """`numerator` / N in front of the blocks, for `risk` times the risk of eq. (43)."""
    for what, basis in bases(draw):
        size = basis.maps[0].shape[0] * (len(basis.features[-1]) + len(basis.y))
        samples = basis.y.shape[1]
        for place, weights in (("random", draw.normal(size)), ("zero", torch.zeros(size).double())):
            found = dense_hessian(lambda w, basis=basis: risk * basis.risk(w), weights)
            claim = numerator / samples * claimed(basis, weights)
            scale = claimed(basis, weights.abs()).norm() * risk / samples
            yield Case(f"{place} weights, {what}", apart(found, claim, scale=scale), rounding(4 * samples))


STATEMENTS = (
    Statement(
        part="printed",
        place="eq. (13), risk (43)",
        text="The Hessian is 2/N times the blocks.",
        check=partial(check, numerator=2.0),
        note="twice the Hessian of (43), which the paper derives it from",
    ),
    Statement(
        part="corrected",
        place="eqs. (47)-(51), risk (43)",
        text="The Hessian is 1/N times the blocks.",
        check=partial(check, numerator=1.0),
        broken=partial(check, numerator=1.01),
    ),
    Statement(
        part="other_risk",
        place="eq. (13), risk (1/N) sum ||y_hat - y||^2",
        text="Without the factor 1/2 in the risk the prefactor is 2/N.",
        check=partial(check, numerator=2.0, risk=2.0),
        broken=partial(check, numerator=1.0, risk=2.0),
    ),
)
