"""Li et al., Lemma 2: the columns of X can be moved to those of Y in short steps without coming near one another.

Sides: a path really built (great circles, and the rim of a cap around every point in the way), its number of steps,
step lengths and distances; the numbers that eqs. (18) and (19) promise.
Needs: d_x >= 3, unit columns, all samples and labels at least rho apart. One-hot labels of one class repeat, so that
rho = 0: the labels need noise as well as the samples.
"""

import math
from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from leadline.theorems import Case, Statement
from leadline.theorems._draw import Draw
from leadline.theorems._rounding import excess, largest, rounding, unless
from leadline.theorems._sphere import least_distance, longest, moves, path


def instances(draw: Draw) -> Iterator[tuple[str, Tensor, Tensor]]:
    for d_x, m in ((3, 1), (3, 3), (3, 6), (8, 5)):
        yield f"random, d_x={d_x}, m={m}", draw.unit(d_x, m), draw.unit(d_x, m)
    ones = torch.nn.functional.normalize(draw.whole(0, 2, 3, 4) + 0.2 * draw.normal(3, 4), dim=0)
    yield "noisy labels", draw.unit(3, 4), ones
    start = draw.orthogonal(3)
    middle = (start[:, 0] + start[:, 1]) / math.sqrt(2)
    yield "a point in the way", torch.stack([start[:, 0], middle], 1), torch.stack([start[:, 1], start[:, 2]], 1)
    around = torch.stack([start[:, 0], -start[:, 1]], 1)
    yield "to the opposite point, one in the way", around, torch.stack([-start[:, 0], start[:, 2]], 1)


def check(draw: Draw, *, detours: bool = True) -> Iterator[Case]:
    for what, x, y in instances(draw):
        m, rho = x.shape[1], least_distance(x, y)
        lengths = [sum(a.length for a in path(x[:, i], y[:, i], _others(x, y, i), rho)) for i in range(m)]
        yield Case(f"path length, {what}", excess(largest(lengths), longest(rho, m)), rounding(10 * m))
        for d in (0.5, 0.05):
            steps = math.ceil(longest(rho, m) / d)
            current, farthest, nearest = x.clone(), 0.0, math.inf
            for i, place in moves(x, y, steps, detours=detours):
                farthest = largest([farthest, float((place - current[:, i]).norm())])
                current[:, i] = place
                nearest = -largest([-nearest, -least_distance(current)])
            yield Case(f"arrives at Y, {what}, d={d}", unless(torch.equal(current, y)), 0.0)
            yield Case(f"steps <= d, {what}, d={d}", excess(farthest, d), rounding(10))
            far = excess(rho / 2, nearest) if m > 1 else 0.0
            yield Case(f"distances >= rho/2, {what}, d={d}", far, rounding(100 * len(x), 1 / rho))


def _others(x: Tensor, y: Tensor, i: int) -> Tensor:
    """Where the other columns are while column i moves."""
    return torch.cat([y[:, :i], x[:, i + 1 :]], dim=1)


STATEMENTS = (
    Statement(
        place="Lemma 2, eqs. (18), (19)",
        text="m ceil((rho (m - 1) / 2 + 1) pi / d) moves of one column, of at most d, lead from X to Y, rho/2 apart.",
        check=check,
        broken=partial(check, detours=False),
    ),
)
