"""Chen et al., Theorem 2: at every saddle point of (P_phi) W_{L+1} is rank-deficient and some curvature is negative.

Sides: saddle points built for every rank r < N_o of W_{L+1} (fit r principal directions of the best prediction, blind
the rest), their gradient and lowest Hessian eigenvalue by automatic differentiation; zero, and less than zero.
Needs: the squared loss, Assumptions 1, 3 and 4. That no saddle has a W_{L+1} of full rank is Theorem 1 (a).
"""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from leadline.linalg.hessian import dense_hessian
from leadline.theorems import Aside, Case, Statement
from leadline.theorems._draw import Draw
from leadline.theorems._resnest import Basis, lowest, resnest
from leadline.theorems._rounding import kappa, rounding, strictly


def critical_point(basis: Basis, rank: int, draw: Draw) -> Tensor:
    """W_{L+1} = U_S C of the given rank, U_S the leading principal directions of the least-squares prediction.

    C [W_0 ... W_{L-1}] and C W_L give the best heads in those directions; in the others, u^T Y X_L^T = 0 is reached by
    the part of W_L that C does not see.
    """
    v, m, k = basis.features[-1], len(basis.maps[0]), len(basis.features[-1])
    best = torch.linalg.lstsq(basis.stacked.T, basis.y.T, driver="gelsd").solution.T
    u = torch.linalg.svd(best @ basis.stacked)[0]
    heads = u[:, :rank].T @ best
    inverse = torch.linalg.pinv(basis.columns)
    blind = torch.eye(m).double() - basis.columns @ inverse
    c = heads[:, :-k] @ inverse + draw.normal(rank, m) @ blind
    others = torch.linalg.svd(c)[2][rank:] if rank else torch.eye(m).double()
    left = u[:, rank:].T @ basis.y
    unseen = -torch.linalg.pinv(left @ v.T) @ (left @ basis.hidden.T) @ others.T
    w_l = torch.linalg.pinv(c) @ heads[:, -k:] + others.T @ unseen.T if rank else unseen.T
    return torch.cat([w_l.flatten(), (u[:, :rank] @ c).flatten()])


def instances(draw: Draw) -> Iterator[tuple[str, Basis]]:
    """K_L >= N_o, so that saddles of every rank exist."""
    for width, sizes, outputs in ((7, (4, 3, 2), 2), (9, (4, 3, 3), 3), (5, (5, 2), 2)):
        yield f"M={width}, K={sizes}, {outputs} outputs", resnest(draw, width=width, sizes=sizes, outputs=outputs)


def check(draw: Draw, *, full: bool = False) -> Iterator[Case | Aside]:
    """`full` takes rank N_o: the global minimum, which is no saddle."""
    for what, basis in instances(draw):
        outputs = len(basis.y)
        for rank in (outputs,) if full else range(outputs):
            weights = critical_point(basis, rank, draw)
            w_l, w_out = basis.split(weights)
            leaf = weights.clone().requires_grad_()
            gradient = torch.autograd.grad(basis.risk(leaf), leaf)[0]
            values = torch.linalg.eigvalsh(dense_hessian(basis.risk, weights))
            name = f"rank {rank}, {what}"
            growth = (kappa(basis.columns) * kappa(basis.stacked)) ** 2 * float(1 + w_l.norm() + w_out.norm())
            yield Case(
                f"critical, {name}",
                float(gradient.norm() / values.abs().amax()),
                rounding(basis.stacked.numel(), growth),
            )
            strict = rounding(len(values) ** 2) * float(values.abs().amax())
            yield Case(f"negative curvature, {name}", strictly(values[0], -strict), 0.0)
            yield Aside(f"lowest over largest eigenvalue, {name}", float(values[0] / values.abs().amax()))
            above = float(basis.risk(weights)) - lowest(basis)
            yield Case(f"above the minimum, {name}", strictly(basis.tolerance * basis.scale, above), 0.0)


STATEMENTS = (
    Statement(
        place="Theorem 2 (a), (b)",
        text="Saddle points have a rank-deficient W_{L+1} and a direction of strictly negative curvature.",
        check=check,
        broken=partial(check, full=True),
    ),
)
