"""Zaeemzadeh et al., eq. (9): the coupled Newton-Schulz iteration for the inverse root of a Gram matrix.

Sides: Z_k after the iteration has settled or passed all bounds; G^{-1/2} from the eigenvectors of G = P^H P.
Needs: eigenvalues of Y_0 Z_0 in (0, 3), the basin of 1 under p -> p (3 - p)^2 / 4. He-initialised kernels have larger
ones, and so has the stem at its own target, sigma^2 = 64/3. Dividing G by its norm first, and Z by the root of it
afterwards, always works for G of full rank.
"""

import math
from collections.abc import Iterator
from functools import partial
from itertools import pairwise

import torch
from torch import Tensor

from leadline.theorems import Aside, Case, Statement
from leadline.theorems._convolution import by_frequency, polar, target
from leadline.theorems._draw import Draw
from leadline.theorems._rounding import apart, excess, kappa, largest, norm, rounding

LOST = 1e6  # times the root: what has come so far does not come back
MOST = 200


def inverse_root(gram: Tensor) -> Tensor:
    values, vectors = torch.linalg.eigh(gram)
    root: Tensor = vectors @ torch.diag(values**-0.5).to(vectors) @ vectors.mH
    return root


def iterate(y: Tensor, steps: int = MOST) -> Iterator[tuple[Tensor, Tensor]]:
    """(Y_k, Z_k) for k = 0, 1, ..."""
    eye = torch.eye(len(y)).to(y)
    z = eye
    for _ in range(steps):
        yield y, z
        t = 3 * eye - z @ y
        y, z = y @ t / 2, t @ z / 2
    yield y, z


def settled(gram: Tensor, *, scaled: bool) -> tuple[Tensor, int]:
    """Z and its k: at the first k where I - Z Y no longer shrinks below 1e-3, or where Z has passed all bounds."""
    size = float(torch.linalg.matrix_norm(gram)) if scaled else 1.0
    limit, before = LOST * norm(inverse_root(gram / size)), math.inf
    for k, (y, z) in enumerate(iterate(gram / size)):
        rest = float(torch.linalg.matrix_norm(torch.eye(len(y)).to(y) - z @ y))
        if norm(z) > limit or (rest >= before and before < 1e-3) or k == MOST:
            break
        before = rest
    return z / math.sqrt(size), k


def kernels(draw: Draw) -> Iterator[tuple[str, Tensor]]:
    """He-initialised: variance 2 / (k^2 c)."""
    for c, d, k in ((3, 64, 3), (64, 128, 1), (16, 16, 3)):
        yield f"He, {c} to {d}, {k}x{k}", math.sqrt(2 / (k * k * c)) * draw.normal(d, c, k, k)


def grams(draw: Draw) -> Iterator[tuple[str, Tensor]]:
    for what, kernel in kernels(draw):
        p = by_frequency(kernel, 4)[1]
        yield what, p.mH @ p
    stem = polar(by_frequency(draw.normal(64, 3, 3, 3), 4)[1], target(torch.empty(64, 3)))
    yield "the stem at its target", stem.mH @ stem
    q = draw.orthogonal(8)
    yield "eigenvalues in (0, 2)", q @ torch.diag(draw.uniform(8, low=0.1, high=1.9)) @ q.T
    yield "kappa(G) = 1e6", q @ torch.diag(torch.logspace(-6, 0, 8, dtype=torch.float64)) @ q.T
    yield "1x1", draw.uniform(1, 1, low=0.1, high=50.0)


def check(draw: Draw, *, scaled: bool) -> Iterator[Case | Aside]:
    for what, gram in grams(draw):
        z, k = settled(gram, scaled=scaled)
        root = inverse_root(gram)
        yield Case(what, apart(z, root, scale=root.norm()), rounding(len(gram) ** 2 * (k + 1), kappa(gram)))
        yield Aside(f"iterations, {what}", k)
    lost = draw.matrix(6, 6, kappa=2.0, rank=5)
    (_, before), (_, after) = list(iterate(lost @ lost.T, 40))[-2:]
    yield Aside("growth of Z per step where G is singular", norm(after) / norm(before))


def quadratic(draw: Draw, *, order: int = 2) -> Iterator[Case]:
    """E_k = I - Z_k Y_k: E_{k+1} = E_k^2 (3 I + E_k) / 4, so ||E_{k+1}|| <= ||E_k||^2 from a scaled start."""
    for what, gram in grams(draw):
        eye = torch.eye(len(gram)).to(gram)
        pairs = iterate(gram / torch.linalg.matrix_norm(gram), 12)
        rests = [eye - z @ y for y, z in pairs]
        claims = [torch.linalg.matrix_power(e, order) @ (3 * eye + e) / 4 for e in rests[:-1]]
        tolerance = rounding(12 * len(gram) ** 2, kappa(gram))
        error = largest(apart(found, claim) for found, claim in zip(rests[1:], claims, strict=True))
        yield Case(f"E_(k+1), {what}", error, tolerance)
        slower = largest(excess(norm(after), norm(before) ** order) for before, after in pairwise(rests))
        yield Case(f"rate, {what}", slower, tolerance)


STATEMENTS = (
    Statement(
        part="printed",
        place="eq. (9), Y_0 = P^H P, Z_0 = I",
        text="Z_k converges to (P^H P)^{-1/2}.",
        check=partial(check, scaled=False),
        note="only if the eigenvalues of P^H P are below 3; the error is the one at which Z_k has passed all bounds",
    ),
    Statement(
        part="scaled",
        place="eq. (9), Y_0 = P^H P / ||P^H P||_F",
        text="Z_k / ||P^H P||_F^{1/2} converges to (P^H P)^{-1/2}.",
        check=partial(check, scaled=True),
        broken=partial(check, scaled=False),
    ),
    Statement(
        part="quadratic",
        place="section 3, after eq. (9)",
        text="From a scaled start the convergence is quadratic: E_{k+1} = E_k^2 (3 I + E_k) / 4 for E_k = I - Z_k Y_k.",
        check=quadratic,
        broken=partial(quadratic, order=3),
    ),
)
