"""Zaeemzadeh et al., eq. (8): the nearest matrix with equal singular values, without a singular value decomposition.

Sides: sigma P (P^T P)^{-1/2}; sigma U V^H from the SVD of P. And its distance from P against that of other isometries.
Needs: d >= c, full rank, and the conjugate transpose: at all frequencies but a few P is complex. For c > d the other
Gram matrix, (P P^H)^{-1/2} P.
"""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from leadline.theorems import Case, Statement
from leadline.theorems._convolution import by_frequency, polar, target
from leadline.theorems._draw import Draw
from leadline.theorems._rounding import apart, excess, kappa, largest, rounding

SHAPES = ((4, 3, 3, 8), (5, 3, 4, 4), (4, 1, 6, 9), (4, 3, 1, 5), (4, 3, 8, 3))  # n, k, c, d


def inverse_root(gram: Tensor) -> Tensor:
    """G^{-1/2}, the principal one, of any diagonalisable matrix, by its eigenvectors."""
    values, vectors = torch.linalg.eig(gram)
    root: Tensor = vectors @ torch.diag_embed(values**-0.5) @ torch.linalg.inv(vectors)
    return root


def formula(p: Tensor, sigma: float, *, conjugate: bool = True) -> Tensor:
    """Eq. (8) on the smaller side."""
    other = p.mH if conjugate else p.mT
    if p.shape[0] >= p.shape[1]:
        return sigma * p @ inverse_root(other @ p)
    return sigma * inverse_root(p @ other) @ p


def frequencies(draw: Draw) -> Iterator[tuple[str, Tensor, float]]:
    """P at the constant frequency, which is real, and at one that is not."""
    for n, k, c, d in SHAPES:
        kernel = draw.normal(d, c, k, k)
        for at, what in ((0, "real"), (1, "complex")):
            if k > 1 or at == 0:
                yield f"{what} P, {c} to {d}, {k}x{k}", by_frequency(kernel, n)[at], target(kernel)
    yield "unitary P", polar(torch.complex(draw.normal(5, 5), draw.normal(5, 5)), 1.0), 1.0


def check(draw: Draw, *, conjugate: bool = True) -> Iterator[Case]:
    for what, p, sigma in frequencies(draw):
        found, steps = formula(p, sigma, conjugate=conjugate), float(4 * max(p.shape) ** 2)
        grown = kappa(p) ** 3  # of the Gram's eigenvalues twice, of its root once
        yield Case(
            f"sigma U V^H, {what}",
            apart(found, polar(p, sigma), scale=sigma * min(p.shape) ** 0.5),
            rounding(steps, grown),
        )
        each = torch.linalg.svdvals(found)
        yield Case(f"singular values, {what}", float((each / sigma - 1).abs().amax()), rounding(steps, grown))


def nearest(draw: Draw, *, turned: float = 0.0) -> Iterator[Case]:
    """No isometry drawn at random or nearby is nearer; `turned` moves the candidate away first."""
    for what, p, sigma in frequencies(draw):
        spin = torch.matrix_exp(turned * _skew(draw, p.shape[0]))
        best = (p - spin @ polar(p, sigma)).norm()
        for size in (1e-3, 0.1, 10.0):
            others = [torch.matrix_exp(size * _skew(draw, p.shape[0])) @ polar(p, sigma) for _ in range(5)]
            least = -largest(-float((p - other).norm()) for other in others)
            yield Case(f"{what}, turned by {size:g}", excess(best, least, scale=p.norm()), rounding(p.numel()))


def _skew(draw: Draw, d: int) -> Tensor:
    """A random skew-Hermitian matrix of norm one."""
    z = torch.complex(draw.normal(d, d), draw.normal(d, d))
    return (z - z.mH) / max(float((z - z.mH).norm()), 1e-300)


STATEMENTS = (
    Statement(
        part="printed",
        place="eq. (8)",
        text="sqrt(d / min(d, c)) P (P^T P)^{-1/2} has all singular values at sqrt(d / min(d, c)).",
        check=partial(check, conjugate=False),
        note="P is complex at most frequencies, where P^T P is not Hermitian",
    ),
    Statement(
        part="corrected",
        place="eq. (8) with P^H",
        text="sqrt(d / min(d, c)) P (P^H P)^{-1/2}, or (P P^H)^{-1/2} P where c > d, is sigma U V^H.",
        check=check,
        broken=partial(check, conjugate=False),
    ),
    Statement(
        part="nearest",
        place="section 3, before eq. (8)",
        text="sigma U V^H is the nearest to P of all matrices whose singular values are all sigma.",
        check=nearest,
        broken=partial(nearest, turned=0.5),
    ),
)
