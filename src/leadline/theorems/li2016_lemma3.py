"""Li et al., Lemma 3: at zero, a derivative of the loss vanishes unless its weights fill all n layers of some unit.

Sides: mixed partial derivatives of any order by repeated automatic differentiation; zero. And for n weights that fill
one unit, the product the chain rule gives.
Needs: Assumption 3, sigma_mid(0) = sigma_post(0) = 0. ReLU is a parabola through the origin here.
"""

from collections.abc import Iterator
from functools import partial

import torch

from leadline.theorems import Case, Statement
from leadline.theorems._draw import Draw
from leadline.theorems._rounding import largest, rounding
from leadline.theorems._shortcut_net import AT_ZERO, Activation, Net, activated

D, SAMPLES, UNITS = 2, 5, 2
PICKS = 6  # of weights per network
Index = tuple[int, int, int, int]  # r, l, i, j


def derivative(net: Net, shape: tuple[int, ...], picks: list[Index]) -> float:
    """d^N L / dw_1 ... dw_N at zero."""
    weights = torch.zeros(shape, dtype=torch.float64, requires_grad=True)
    value = net.loss(weights)
    for pick in picks:
        value = torch.autograd.grad(value, weights, create_graph=True, materialize_grads=True)[0][pick]
    return float(value.detach())


def complete(picks: list[Index], n: int) -> bool:
    """Do they fill all layers of some unit?"""
    return any({pick[1] for pick in picks if pick[0] == r} == set(range(n)) for r in range(UNITS))


def picked(draw: Draw, n: int, count: int) -> list[Index]:
    """Weights at random."""
    columns = (draw.whole(0, high, count).int().tolist() for high in (UNITS, n, D, D))
    return list(zip(*columns, strict=True))


def nets(draw: Draw, sigmoid: Activation | None) -> Iterator[tuple[str, Net, float]]:
    """One net for each activation, with sigma'_mid(0) = sigma'_post(0)."""
    x, y = draw.normal(D, SAMPLES), draw.normal(D, SAMPLES)
    for name in AT_ZERO:
        chosen, slope = activated(name, "all")
        yield name, Net(x=x, y=y, **chosen), slope
    if sigmoid:
        yield "plain sigmoid", Net(x=x, y=y, mid=sigmoid, post=sigmoid), 0.25


def check(draw: Draw, *, sigmoid: Activation | None = None) -> Iterator[Case]:
    for name, net, slope in nets(draw, sigmoid):
        for n in (1, 2, 3):
            shape = (UNITS, n, D, D)
            drawn = [picked(draw, n, int(draw.whole(1, n + 3))) for _ in range(3 * PICKS)]
            incomplete = [picks for picks in drawn if not complete(picks, n)][:PICKS]  # none of one layer
            worst = largest([0.0, *(abs(derivative(net, shape, picks)) for picks in incomplete)])
            scale = 1 + float((net.x - net.y).norm() * net.x.norm())
            yield Case(f"incomplete, {name}, n={n}", worst, rounding(SAMPLES * D, scale))
            picks = [(1, layer, 0, 0) for layer in range(n)]
            claim = slope**n * float(net.moment()[0, 0])
            yield Case(
                f"complete, {name}, n={n}", abs(derivative(net, shape, picks) - claim), rounding(SAMPLES * D * n, scale)
            )


STATEMENTS = (
    Statement(
        place="Lemma 3",
        text="At w = 0 a partial derivative of any order is zero unless its weights include all n layers of some unit.",
        check=check,
        broken=partial(check, sigmoid=torch.sigmoid),
    ),
)
