"""Li et al., Lemma 1: one two-layer residual unit can move a single column of its input and leave all others.

Sides: W^2 ReLU(W^1 A + b 1) + A for the weights of eqs. (15)-(17); the matrix A' with column i replaced. And the
norms of the weights against eq. (14).
Needs: columns of length one, at least rho/2 apart.
"""

import math
from collections.abc import Iterator
from functools import partial

import torch

from leadline.theorems import Case, Statement
from leadline.theorems._draw import Draw
from leadline.theorems._rounding import apart, largest, rounding
from leadline.theorems._sphere import least_distance
from leadline.theorems._unit import unit


def check(draw: Draw, *, crowding: float = 1.0) -> Iterator[Case]:
    """`crowding` overstates rho; more than 1 breaks the assumption on the distances."""
    for d_x, m in ((3, 1), (3, 2), (3, 8), (10, 5), (10, 40), (2, 3)):
        for reach in (1e-6, 0.1, math.pi):
            a = draw.unit(d_x, m)
            target = torch.nn.functional.normalize(a[:, 0] + math.tan(reach / 2) * draw.normal(d_x), dim=0)
            moved = torch.cat([target[:, None], a[:, 1:]], dim=1)
            rho = min(2.0, 2 * least_distance(a), 2 * least_distance(moved)) * crowding
            first, last, b = unit(a[:, 0], target, rho)
            d = float((target - a[:, 0]).norm())
            what = f"d_x={d_x}, m={m}, rho={rho:.2g}, d={d:.2g}"
            got = last @ torch.relu(first @ a + b) + a
            tolerance = rounding(4 * d_x * m, 1 + 8 * d / rho**2)
            yield Case(f"moves one column, {what}", apart(got, moved), tolerance)
            size = math.sqrt(8 * d) / rho
            norms = largest(abs(float(w.norm()) / size - 1) for w in (first, last))
            yield Case(f"||W||, {what}", norms, rounding(4 * d_x, 1 + 1 / d))


STATEMENTS = (
    Statement(
        place="Lemma 1, eqs. (13)-(17)",
        text="W^2 ReLU(W^1 A + b 1) + A = A' with ||W^1||_F = ||W^2||_F = sqrt(8 d) / rho, d the distance of the move.",
        check=check,
        broken=partial(check, crowding=2.0),
    ),
)
