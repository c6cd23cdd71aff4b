"""Oyedotun et al., Theorem 3: deep linear networks of aggregated residual branches keep all directions of their input.

Sides: h^L by multiplying the matrices sum_k W^{l,k} W^{l-1,k} + I; sum_i alpha_i v_i prod_l (p_i^l + 1) with
p_i^l = sum_k lambda_i^{l,k}, and what eq. (22) leaves of it. The paper's indices j, k, m are all k here, the path.
Needs: Assumption 1 for all layers of all paths.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from leadline.theorems import Aside, Case, Statement
from leadline.theorems._draw import Draw
from leadline.theorems._eigenbasis import (
    SHAPES,
    Net,
    aggregated,
    approximated,
    bases,
    bounded,
    closed_form,
    gapped,
    kept,
    lost_at,
)

WIDTH = 6
DEEP = 1000
PATHS = 4


def network(draw: Draw, basis: Tensor, values: Tensor, *, skip: float = 1.0) -> Net:
    """From lambda^{l,k} = first * last, (m, L, n), shared at random between the two layers of the path."""
    first = draw.uniform(*values.shape, low=0.5, high=1.5)
    return aggregated(basis, first, values / first, skip=skip)


def exact(draw: Draw, *, skip: float = 1.0) -> Iterator[Case]:
    """Eq. (45) for one and for several paths."""
    for paths in (1, PATHS):
        for n, depth in SHAPES[:3]:
            for kind, basis in bases(draw, n).items():
                values = draw.normal(paths, depth, n) / (4 * paths)
                lost = torch.cat([values[..., :-1], 0 * values[..., -1:]], dim=2)
                for what, each in (("random", values), ("zero", 0 * values), ("rank-deficient", lost)):
                    yield closed_form(f"{what}, m={paths}, {kind}", network(draw, basis, each, skip=skip), draw)


def printed_spectra(draw: Draw) -> dict[str, Tensor]:
    """|lambda_1^{l,k}| > |lambda_i^{l,k}| on every path of all of them."""
    positive = draw.uniform(PATHS, DEEP, 1, low=0.1, high=0.3) / PATHS
    others = draw.uniform(PATHS, DEEP, WIDTH - 1, low=-0.9, high=0.9)
    values = torch.cat([positive, positive * others], dim=2)
    opposite = values[:2].mean(0) * torch.tensor([1, -1]).double()[:, None, None]
    opposite[:, :, 1:] = opposite[:, :, 1:].abs()
    return {
        "lambda_1 > 0": values,
        "lambda_1 < 0": -values,
        "lambda_1 of either sign": values * draw.sign(1, DEEP, 1),
        "paths that cancel in direction 1": opposite,
        "1/L": values / DEEP,
    }


def printed(draw: Draw) -> Iterator[Case]:
    """Eq. (22) at L = 1000."""
    for what, values in printed_spectra(draw).items():
        yield approximated(what, network(draw, torch.eye(WIDTH).double(), values), draw.normal(WIDTH, 1))


def dominant(draw: Draw, *, least: float = 0.0, most: float = 0.9) -> Iterator[Case]:
    """Eq. (22) where 1 + p_1 dominates: |1 + p_i| <= q |1 + p_1|, and the product grows."""
    x = draw.normal(WIDTH, 1)
    for kind, basis in {**bases(draw, WIDTH), "V = I": torch.eye(WIDTH).double()}.items():
        for depth in (1, 10, 100, DEEP):
            total = 1.3 * gapped(draw, depth, WIDTH, least=least, most=most) - 1
            net = network(draw, basis, total * draw.uniform(PATHS, 1, 1).softmax(0))
            yield bounded(f"bound, {kind}, L={depth}", net, x)
    yield approximated(f"the rest, L={DEEP}", net, x)


def all_kept(draw: Draw) -> Iterator[Case | Aside]:
    """Remark 3 on the spectra of eq. (22)."""
    for what, values in printed_spectra(draw).items():
        yield kept(what, network(draw, torch.eye(WIDTH).double(), values), draw.normal(WIDTH, 2 * WIDTH))
        yield Aside(f"depth at which H^L is singular to rounding, {what}", lost_at(1 + values.sum(0)))


STATEMENTS = (
    Statement(
        part="exact",
        place="eq. (45)",
        text="With shared eigenvectors h^L = sum_i alpha_i v_i prod_l (sum_k lambda_i^{l,k} + 1).",
        check=exact,
        broken=lambda draw: exact(draw, skip=0.9),
    ),
    Statement(
        part="printed",
        place="Theorem 3, eq. (22)",
        text="If |lambda_1^l| > |lambda_i^l|, h^L tends to x + alpha_1 v_1 (prod_l (1 + sum_k lambda_1^{l,k}) - 1).",
        check=printed,
        note="what dominates is |1 + sum_k lambda^k|: larger eigenvalues on every path may cancel between the paths",
    ),
    Statement(
        part="corrected",
        place="Theorem 3, eq. (47)",
        text="Eq. (22) holds relative to h^L if |1 + p_i^l| <= q |1 + p_1^l|, q < 1, and the product grows.",
        check=dominant,
        broken=lambda draw: dominant(draw, least=1.0, most=1.0),
    ),
    Statement(
        part="remark3",
        place="Remark 3",
        text="All directions contribute to h^L for L >> 1; the hidden representations H^L are non-singular.",
        check=all_kept,
        note="as for Remark 2: only if the sums over the paths shrink with depth",
    ),
)
