"""Chen et al., Corollary 2: a wide ResNEst with bottleneck blocks is no worse than the best linear predictor.

Sides: local minima of (P_phi) for random phi (more general than minima of (P), as the paper remarks); the least risk
of a linear function of the input.
Needs: Assumptions 2, 3, 4. For the strict part (b) the H_0 that is left when all other heads are put to zero must be
fitted anew: with a feature that is a linear function of x, minimising heads exist that lose without it, though it
adds nothing.
"""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from leadline.theorems import Aside, Case, Statement
from leadline.theorems._draw import Draw
from leadline.theorems._resnest import LOSSES, Basis, bases, local_minimum, lowest, resnest
from leadline.theorems._rounding import excess, strictly


def linear(basis: Basis) -> Basis:
    """(PA) of the input alone."""
    return Basis((), basis.features[:1], basis.y)


def check(draw: Draw, *, width: int | None = None, wordless: bool = False) -> Iterator[Case | Aside]:
    """`wordless` takes the input away from the ResNEst's features."""
    nets = bases(draw) if width is None else iter([(f"M={width}", resnest(draw, width=width))])
    for what, basis in nets:
        features = (0 * basis.features[0], *basis.features[1:]) if wordless else basis.features
        used = Basis(basis.maps, features, basis.y)
        for name, loss in LOSSES.items():
            risk, best = float(used.risk(local_minimum(used, draw, loss), loss)), lowest(linear(basis), loss)
            yield Case(f"{name}, {what}", excess(risk, best, scale=basis.scale), basis.tolerance)
            yield Aside(f"risk over that of the best linear predictor, {name}, {what}", risk / best if best else 1.0)


def predictable(draw: Draw) -> Basis:
    """A ResNEst whose only feature beside x is part of x."""
    basis = resnest(draw, width=6, sizes=(4, 2))
    return Basis(basis.maps, (basis.features[0], basis.features[0][:2]), basis.y)


def strict(draw: Draw, *, refit: bool = True) -> Iterator[Case]:
    """(b): if H_0* alone is worse than all heads, is the ResNEst strictly better than the best linear predictor?"""
    for what, basis in (*bases(draw), ("a feature that is part of x", predictable(draw))):
        best, risk = lowest(linear(basis)), float(basis.risk(local_minimum(basis, draw)))
        alone = (
            best
            if refit
            else float(linear(basis).augmented_risk(_some_heads(basis, draw)[:, : len(basis.features[0])]))
        )
        margin = basis.tolerance * basis.scale
        premise = strictly(lowest(basis) + margin, alone) == 0
        yield Case(what, strictly(risk, best - margin) if premise else 0.0, 0.0)


def _some_heads(basis: Basis, draw: Draw) -> Tensor:
    """Minimising heads of (PA_phi), any of them: least squares plus something the features do not see."""
    v = basis.stacked
    best = torch.linalg.lstsq(v.T, basis.y.T, driver="gelsd").solution.T
    unseen = torch.linalg.svd(v)[0][:, torch.linalg.matrix_rank(v) :]
    heads: Tensor = best + draw.normal(len(basis.y), unseen.shape[1]) @ unseen.T
    return heads


STATEMENTS = (
    Statement(
        part="a",
        place="Corollary 2 (a)",
        text="A local minimum of (P_phi) is at most the least risk of a linear predictor.",
        check=check,
        broken=partial(check, wordless=True),
    ),
    Statement(
        part="b_printed",
        place="Corollary 2 (b), H_0* from (H_0*, ..., H_L*)",
        text="It is strictly less if A(H_0*, 0, ..., 0) > A(H_0*, ..., H_L*).",
        check=partial(strict, refit=False),
        note="not for minimisers that lean on a linearly predictable feature: H_0* is then not the best linear fit",
    ),
    Statement(
        part="b_corrected",
        place="Corollary 2 (b), H_0* of the linear problem",
        text="It is strictly less if the best H_0 alone is worse than all heads.",
        check=strict,
        broken=partial(strict, refit=False),
    ),
)
