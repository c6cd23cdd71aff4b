"""Chen et al., Proposition 2: an A-ResNEst bounds the risk of the ResNEst with the same features from below.

Sides: local minima of (P_phi), by Newton's method from random starts; the minimum of the convex (PA_phi), by least
squares or Newton. Before that, R(W_L, W_{L+1}) against A(W_{L+1} W_0, ..., W_{L+1} W_L), and A on segments against
its chords.
Needs: Assumption 2 only, so the widths go below the bottleneck condition, where the excess is positive.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from leadline.theorems import Aside, Case, Statement
from leadline.theorems._draw import Draw
from leadline.theorems._resnest import LOSSES, bases, local_minimum, lowest, resnest
from leadline.theorems._rounding import excess, rounding


def convex(draw: Draw, *, bent: float = 0.0) -> Iterator[Case]:
    """A(t H + (1 - t) H') <= t A(H) + (1 - t) A(H'); and R is A at H_i = W_{L+1} W_i."""
    for what, basis in bases(draw):
        for name, loss in LOSSES.items():
            shape = len(basis.y), len(basis.stacked)
            one, other = draw.normal(*shape), 10 * draw.normal(*shape)
            ends = basis.augmented_risk(one, loss), basis.augmented_risk(other, loss)
            for t in (0.1, 0.5, 0.9):
                between = basis.augmented_risk(t * one + (1 - t) * other, loss)
                chord = t * ends[0] + (1 - t) * ends[1]
                yield Case(f"{name}, t={t}, {what}", excess(between, chord, scale=chord), rounding(basis.y.numel()))
            m, k = len(basis.maps[0]), len(basis.features[-1])
            weights = draw.normal(m * k + shape[0] * m)
            risk = basis.risk(weights, loss)
            gap = abs(float(risk - basis.augmented_risk(basis.heads(weights) * (1 + bent), loss))) / float(risk or 1)
            yield Case(f"R is A at W_(L+1) W_i, {name}, {what}", gap, rounding(basis.y.numel() * m))


def check(draw: Draw, *, without_last: bool = False) -> Iterator[Case | Aside]:
    for width in (3, 5, 7, 9):
        basis = resnest(draw, width=width)
        bounding = replace(basis, features=basis.features[:-1]) if without_last else basis
        for name, loss in LOSSES.items():
            risk = float(basis.risk(local_minimum(basis, draw, loss), loss))
            least = lowest(bounding, loss)
            yield Case(f"{name}, M={width}", excess(least, risk, scale=basis.scale), basis.tolerance)
            yield Aside(f"excess risk epsilon, {name}, M={width}", risk - least)


STATEMENTS = (
    Statement(
        part="convex",
        place="Proposition 2, eq. (5)",
        text="(PA_phi) is convex, and R(W_L, W_{L+1}) = A(W_{L+1} W_0, ..., W_{L+1} W_L).",
        check=convex,
        broken=partial(convex, bent=0.01),
    ),
    Statement(
        part="bound",
        place="Proposition 2, eq. (6)",
        text="epsilon = R - A >= 0 for any local minimiser of (P_phi) and any features.",
        check=check,
        broken=partial(check, without_last=True),
        note="sum of K_i below the last is 7: from M = 7 on epsilon vanishes (Theorem 1)",
    ),
)
