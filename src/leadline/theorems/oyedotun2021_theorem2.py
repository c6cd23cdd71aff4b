"""Oyedotun et al., Theorem 2: deep linear residual networks keep all directions of their input.

Sides: h^L by multiplying the matrices W^l + I; sum_i alpha_i v_i prod_l (lambda_i^l + 1) and what eq. (16) leaves of
it.
Needs: Assumption 1 for eqs. (16) and (18). The form of Remark 2 that holds does without it.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from leadline.theorems import Aside, Case, Statement
from leadline.theorems._draw import Draw
from leadline.theorems._eigenbasis import (
    SHAPES,
    approximated,
    bases,
    bounded,
    closed_form,
    gapped,
    kept,
    lost_at,
    residual,
    spectra,
    unshared,
)
from leadline.theorems._rounding import apart, excess, kappa, rounding

WIDTH = 6
DEEP = 1000


def exact(draw: Draw, *, skip: float = 1.0) -> Iterator[Case | Aside]:
    """Eq. (18) against the matrices, and Axiom 1: the product as a sum of elementary symmetric polynomials."""
    for n, depth in SHAPES:
        for kind, basis in bases(draw, n).items():
            for what, values in spectra(draw, depth, n).items():
                yield closed_form(f"{what}, {kind}", residual(basis, values / 4, skip=skip), draw)
    for depth in (1, 7, 60):
        values = draw.normal(depth)
        error = apart((1 + values).prod(), _elementary(values).sum(), scale=(1 + values.abs()).prod())
        yield Case(f"Axiom 1, L={depth}", error, rounding(depth**2))
    for size in (0.5, 0.05):
        gaussian = size * draw.normal(10, WIDTH, WIDTH) / WIDTH**0.5 + torch.eye(WIDTH).double()
        yield Aside(f"without Assumption 1 (10 layers I + {size:g} Gaussian), relative error", unshared(gaussian, draw))


def _elementary(values: Tensor) -> Tensor:
    """1, sum lambda, ..., prod lambda: the coefficients of prod_l (1 + lambda^l z)."""
    sums = torch.zeros(len(values) + 1).double()
    sums[0] = 1
    for value in values:
        sums = sums + value * torch.cat([sums[-1:] * 0, sums[:-1]])
    return sums


def printed_spectra(draw: Draw) -> dict[str, Tensor]:
    """|lambda_1^l| > |lambda_i^l| in all of them."""
    positive = draw.uniform(DEEP, 1, low=0.1, high=0.3)
    others = draw.uniform(DEEP, WIDTH - 1, low=-0.9, high=0.9)
    values = torch.cat([positive, positive * others], dim=1)
    mixed = values * draw.sign(DEEP, 1)
    return {"lambda_1 > 0": values, "lambda_1 < 0": -values, "lambda_1 of either sign": mixed, "1/L": values / DEEP}


def printed(draw: Draw) -> Iterator[Case]:
    """Eq. (16) at L = 1000."""
    for what, values in printed_spectra(draw).items():
        yield approximated(what, residual(torch.eye(WIDTH).double(), values), draw.normal(WIDTH, 1))


def dominant(draw: Draw, *, least: float = 0.0, most: float = 0.9) -> Iterator[Case]:
    """Eq. (16) where 1 + lambda_1 is what dominates: |1 + lambda_i| <= q |1 + lambda_1|, and the product grows."""
    x = draw.normal(WIDTH, 1)
    for kind, basis in {**bases(draw, WIDTH), "V = I": torch.eye(WIDTH).double()}.items():
        for depth in (1, 10, 100, DEEP):
            net = residual(basis, 1.3 * gapped(draw, depth, WIDTH, least=least, most=most) - 1)
            yield bounded(f"bound, {kind}, L={depth}", net, x)
    yield approximated(f"the rest, L={DEEP}", net, x)


def all_kept(draw: Draw) -> Iterator[Case | Aside]:
    """Remark 2 on the spectra of eq. (16)."""
    for what, values in printed_spectra(draw).items():
        yield kept(what, residual(torch.eye(WIDTH).double(), values), draw.normal(WIDTH, 2 * WIDTH))
        yield Aside(f"depth at which H^L is singular to rounding, plain, {what}", lost_at(values))
        yield Aside(f"the same, residual, {what}", lost_at(1 + values))
    singular = torch.cat([draw.uniform(1, WIDTH - 1), -torch.ones(1, 1).double()], dim=1)
    yield kept("an eigenvalue -1", residual(torch.eye(WIDTH).double(), singular), draw.normal(WIDTH, WIDTH))


def small_weights(draw: Draw, *, shrinks: bool = True) -> Iterator[Case]:
    """kappa(H^L) <= ((1 + s/L) / (1 - s/L))^L kappa(X) for any layers of norm s/L, here independent Gaussian ones."""
    size = 0.9
    for depth in (1, 10, 100, DEEP):
        matrices = draw.normal(depth, WIDTH, WIDTH)
        each = size / depth if shrinks else size
        matrices = matrices / torch.linalg.matrix_norm(matrices, 2)[:, None, None] * each
        h = batch = draw.normal(WIDTH, 2 * WIDTH)
        for matrix in matrices:
            h = h + matrix @ h
        bound = ((1 + size / depth) / (1 - size / depth)) ** depth * kappa(batch)
        yield Case(f"L={depth}", excess(kappa(h), bound, scale=bound), rounding(depth * WIDTH**2, bound))


STATEMENTS = (
    Statement(
        part="exact",
        place="eqs. (18), (19), Axiom 1",
        text="With shared eigenvectors h^L = sum_i alpha_i v_i prod_l (lambda_i^l + 1).",
        check=exact,
        broken=lambda draw: exact(draw, skip=0.9),
    ),
    Statement(
        part="printed",
        place="Theorem 2, eq. (16)",
        text="If |lambda_1^l| > |lambda_i^l|, h^L tends to x + alpha_1 v_1 (prod_l (1 + lambda_1^l) - 1).",
        check=printed,
        note="what dominates is |1 + lambda|, not |lambda|; and where the weights are of order 1/L no term is small",
    ),
    Statement(
        part="corrected",
        place="Theorem 2, eq. (21)",
        text="Eq. (16) holds relative to h^L if |1 + lambda_i^l| <= q |1 + lambda_1^l|, q < 1, and the product grows.",
        check=dominant,
        broken=lambda draw: dominant(draw, least=1.0, most=1.0),
        note="then h^L is as close to one direction as that of a plain network with eigenvalues 1 + lambda",
    ),
    Statement(
        part="remark2",
        place="Remark 2",
        text="All directions contribute to h^L for L >> 1; the hidden representations H^L are non-singular.",
        check=all_kept,
        note="sigma_min / sigma_max falls geometrically here too, only slower, unless the weights shrink with depth",
    ),
    Statement(
        part="remark2_corrected",
        place="Remark 2",
        text="If ||W^l|| <= s/L, kappa(H^L) <= ((1 + s/L) / (1 - s/L))^L kappa(X), whatever the eigenvectors.",
        check=small_weights,
        broken=lambda draw: small_weights(draw, shrinks=False),
    ),
)
