"""Zaeemzadeh et al., Theorem 2: linear residual networks have a norm-preserving global optimum, at a rate of 1/L.

Sides: weights really built from the polar factors of R, the product of all I + W_l, its largest ||W_l|| and the
gradient norms by automatic differentiation; R, c/L with c = 2 (sqrt pi + sqrt(3 gamma))^2, and 1 -+ c/L.
Needs: det R > 0, which the paper does not say (its source, Hardt and Ma, does): I + W has a positive determinant
whenever ||W|| < 1.
"""

import math
from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from leadline.theorems import Aside, Case, Statement
from leadline.theorems._draw import Draw
from leadline.theorems._gradient_norms import outside, ratios
from leadline.theorems._near_identity import factors, gamma
from leadline.theorems._rounding import apart, excess, largest, norm, rounding, strictly

SAMPLES = 10


def constant(matrix: Tensor) -> float:
    """c = 2 (sqrt pi + sqrt(3 gamma))^2."""
    return 2 * (math.sqrt(math.pi) + math.sqrt(3 * gamma(matrix))) ** 2


def targets(draw: Draw) -> Iterator[tuple[str, Tensor]]:
    """Linear maps of positive determinant."""
    for n in (2, 5):
        for kappa in (1.0, 10.0, 1e6):
            yield f"random, n={n}, kappa {kappa:g}", _oriented(3 * draw.matrix(n, n, kappa=kappa), 1)
    yield "identity", torch.eye(3).double()
    yield "-I", -torch.eye(4).double()
    yield "1x1", draw.uniform(1, 1, low=0.01, high=20.0)


def _oriented(matrix: Tensor, sign: int) -> Tensor:
    """The same with a determinant of this sign."""
    flip = torch.ones(len(matrix)).double()
    flip[0] = sign * torch.linalg.det(matrix).sign()
    return matrix * flip


def depths(matrix: Tensor) -> list[int]:
    """From the smallest that the theorem allows, L >= 3 gamma, to extreme."""
    least = max(1, math.ceil(3 * gamma(matrix)))
    return [least, 2 * least, 10 * least, 1000]


def check(draw: Draw, *, tighter: float = 1.0) -> Iterator[Case | Aside]:
    for what, matrix in targets(draw):
        n = len(matrix)
        for depth in depths(matrix):
            blocks = factors(matrix, depth)
            delta = constant(matrix) / depth / tighter
            steps = n**2 * (depth + 1)
            product = torch.eye(n).double()
            for block in blocks:
                product = block @ product
            yield Case(
                f"product, {what}, L={depth}",
                apart(product, matrix, scale=norm(matrix)),
                rounding(4 * steps),
            )
            widest = largest(norm(block - torch.eye(n).double()) for block in {id(b): b for b in blocks}.values())
            yield Case(f"||W_l|| <= c/L, {what}, L={depth}", excess(widest, delta), rounding(n**2, 1 + widest))
            x, noise = draw.normal(n, SAMPLES), draw.normal(n, SAMPLES)
            layers = [partial(torch.matmul, block) for block in blocks]
            found = ratios(layers, x, product @ x - (matrix @ x + noise))
            yield Case(f"gradients, {what}, L={depth}", outside(found, delta), rounding(n**2, 1 + widest))
        yield Aside(f"||W_l|| L / c at L=1000, {what}", widest / delta)


def printed(draw: Draw) -> Iterator[Case]:
    """Either sign of det R: with c/L < 1 all products have det > 0, so one of det < 0 is missed by sigma_min(R)."""
    for sign in (1, -1):
        for n in (1, 3, 6):
            matrix = _oriented(draw.matrix(n, n, kappa=5.0), sign)
            depth = math.ceil(constant(matrix)) + 1
            weights = draw.normal(depth, n, n)
            weights = weights / torch.linalg.matrix_norm(weights, 2)[:, None, None] * constant(matrix) / depth
            signs = torch.linalg.slogdet(torch.eye(n).double() + weights)[0]
            yield Case(f"det(I + W) > 0 where ||W|| = c/L, n={n}", strictly(0.0, signs.amin()), 0.0)
            missed = float(torch.linalg.svdvals(matrix)[-1]) / norm(matrix) if sign < 0 else 0.0
            yield Case(f"det R {'>' if sign > 0 else '<'} 0, n={n}, L={depth}", missed, rounding(n**2))


STATEMENTS = (
    Statement(
        part="printed",
        place="Theorem 2",
        text="For any R and L >= 3 gamma some product of L matrices I + W_l, ||W_l|| <= c/L, is R.",
        check=printed,
        note="impossible for det R < 0 once L > c: no matrix of det >= 0 is nearer to R than sigma_min(R)",
    ),
    Statement(
        part="corrected",
        place="Theorem 2, with det R > 0",
        text="If det R > 0, L >= 3 gamma, R is a product of I + W_l, ||W_l|| <= c/L; gradient norms keep to 1 -+ c/L.",
        check=check,
        broken=partial(check, tighter=10.0),
    ),
)
