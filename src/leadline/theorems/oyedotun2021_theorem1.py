"""Oyedotun et al., Theorem 1: deep linear plain networks keep one direction only, that of the dominant eigenvalue.

Sides: h^L by multiplying the layers as matrices; sum_i alpha_i v_i prod_l lambda_i^l and what eq. (9) leaves of it.
Needs: Assumption 1, all layers share their eigenvectors. It is false of independent layers; the asides say what
becomes of those.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from leadline.theorems import Aside, Case, Statement
from leadline.theorems._draw import Draw
from leadline.theorems._eigenbasis import (
    SHAPES,
    Net,
    bases,
    closed_form,
    dominant_first,
    dominated,
    gapped,
    plain,
    spectra,
    unshared,
)
from leadline.theorems._rounding import apart, excess, rounding

WIDTH = 6
DEPTHS = (1, 10, 100, 1000)


def exact(draw: Draw, *, skip: float = 0.0) -> Iterator[Case | Aside]:
    """Eq. (12), and its distance from the truth when the layers do not share eigenvectors."""
    for n, depth in SHAPES:
        for kind, basis in bases(draw, n).items():
            for what, values in spectra(draw, depth, n).items():
                yield closed_form(f"{what}, {kind}", plain(basis, values, skip=skip), draw)
    gaussian = draw.normal(10, WIDTH, WIDTH) / WIDTH**0.5
    yield Aside("without Assumption 1 (10 Gaussian layers, V of the first), relative error", unshared(gaussian, draw))


def _product(matrices: Tensor) -> Tensor:
    product: Tensor = torch.linalg.multi_dot(list(matrices))
    return product


def printed(draw: Draw) -> Iterator[Case]:
    """Eq. (9), where only |lambda_1| > |lambda_i| is asked: the distance of h^L from its first term, over ||h^L||."""
    depth, x = DEPTHS[-1], draw.normal(WIDTH, 1)
    random = dominant_first(draw.normal(depth, WIDTH))
    random = random / random[:, :1].abs() * draw.uniform(depth, 1, low=0.8, high=1.25)
    ratios = 1 - 1 / (torch.arange(depth).double() + 2)[:, None] ** 2
    closing = torch.cat([torch.ones(depth, 1).double(), ratios.expand(depth, WIDTH - 1)], dim=1)
    for what, values in (("random spectra", random), ("lambda_i / lambda_1 = 1 - 1/(l+1)^2", closing)):
        net = plain(draw.orthogonal(WIDTH), values)
        h, first = net.output(x), _first(net, x)
        magnified = values.abs().amax(1).prod() * x.norm() / h.norm()
        yield Case(what, apart(h, first, scale=h.norm()), net.tolerance * float(magnified))
    depth = 100  # deep enough; the other directions have not underflowed yet
    aligned, missed = plain(torch.eye(WIDTH).double(), random[:depth]), torch.cat([0 * x[:1], x[1:]])
    h = aligned.output(missed)  # diagonal layers mix nothing, so rounding stays within each component
    yield Case("alpha_1 = 0", apart(h, _first(aligned, missed), scale=h.norm()), rounding(depth))


def _first(net: Net, x: Tensor) -> Tensor:
    """alpha_1 v_1 prod_l lambda_1^l."""
    alpha: Tensor = torch.linalg.solve(net.basis, x)
    return alpha[0] * net.factors[:, 0].prod() * net.basis[:, :1]


def dominant(draw: Draw, *, least: float = 0.0, most: float = 0.9) -> Iterator[Case]:
    """Eq. (9) under |lambda_i^l| <= q |lambda_1^l|, q < 1, alpha_1 != 0: the rest is bounded, and gone when deep."""
    for kind, basis in bases(draw, WIDTH).items():
        x = draw.normal(WIDTH, 1)
        for depth in DEPTHS:
            net = plain(basis, gapped(draw, depth, WIDTH, least=least, most=most))
            first = _first(net, x)
            rest = apart(net.output(x), first, scale=first.norm())
            tolerance = net.tolerance * float(net.factors[:, 0].abs().prod() * x.norm() / first.norm())
            yield Case(f"bound, {kind}, L={depth}", excess(rest, dominated(net, x)), tolerance)
        yield Case(f"the rest, {kind}, L={DEPTHS[-1]}", rest, tolerance)


def collapse(draw: Draw, *, least: float = 0.0, most: float = 0.9) -> Iterator[Case | Aside]:
    """Remark 1: sigma_2 / sigma_1 of a batch H^L is at most t / (1 - t), t the bound on the rest; gone when deep."""
    for kind, basis in bases(draw, WIDTH).items():
        batch = draw.normal(WIDTH, 2 * WIDTH)
        for depth in DEPTHS:
            net = plain(basis, gapped(draw, depth, WIDTH, least=least, most=most))
            rest = dominated(net, batch)
            scale = net.factors[:, 0].abs().prod() * batch.norm()
            sigma = torch.linalg.svdvals(net.output(batch) / scale)
            share, tolerance = sigma[1] / sigma[0], net.tolerance / float(sigma[0])
            yield Case(f"bound, {kind}, L={depth}", excess(share, rest / (1 - rest)) if rest < 1 else 0.0, tolerance)
        yield Case(f"sigma_2 / sigma_1, {kind}, L={DEPTHS[-1]}", float(share), tolerance)
    for depth in (10, 50, 100):
        sigma = torch.linalg.svdvals(_product(draw.normal(depth, WIDTH, WIDTH)))
        yield Aside(f"without Assumption 1 ({depth} Gaussian layers), sigma_2 / sigma_1", float(sigma[1] / sigma[0]))


STATEMENTS = (
    Statement(
        part="exact",
        place="eqs. (12), (42)",
        text="With shared eigenvectors h^L = sum_i alpha_i v_i prod_l lambda_i^l.",
        check=exact,
        broken=lambda draw: exact(draw, skip=0.1),
    ),
    Statement(
        part="printed",
        place="Theorem 1, eq. (9)",
        text="If |lambda_1^l| > |lambda_i^l| for all l, h^L tends to its first term alpha_1 v_1 prod_l lambda_1^l.",
        check=printed,
        note="a gap in every layer is not enough: the product of the ratios must vanish, and alpha_1 must not",
    ),
    Statement(
        part="corrected",
        place="Theorem 1, eq. (14)",
        text="If |lambda_i^l| <= q |lambda_1^l|, q < 1, and alpha_1 != 0, all but the first term vanish like q^L.",
        check=dominant,
        broken=lambda draw: dominant(draw, least=1.0, most=1.0),
    ),
    Statement(
        part="remark1",
        place="Remark 1",
        text="Then the columns of H^L become collinear: H^L has rank one to rounding.",
        check=collapse,
        broken=lambda draw: collapse(draw, least=1.0, most=1.0),
        note="no eigenvalue being zero, H^L is singular to rounding only, never exactly",
    ),
)
