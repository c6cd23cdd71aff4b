"""Chen et al., Proposition 4: every DenseNEst equals some wide ResNEst with bottleneck blocks.

Sides: the DenseNEst's output; that of the ResNEst with M = M_L, W_i = Pi_i and G_i(x) = Q_i([Pi_0 ... Pi_{i-1}]^T x),
block by block (eqs. (40)-(42)). And the excess risk of that ResNEst's local minima.
Needs: nothing for the equality; Assumptions 2 and 3 for epsilon = 0.
"""

from collections.abc import Iterator
from functools import partial
from itertools import accumulate

import torch
from torch import Tensor

from leadline.theorems import Case, Statement
from leadline.theorems._densenest import INPUTS, DenseNEst, densenest
from leadline.theorems._draw import Draw
from leadline.theorems._resnest import LOSSES, Basis, local_minimum, lowest
from leadline.theorems._rounding import apart, rounding

GROWTHS = ((3, 2), (1,), (4, 4, 4, 4), (1,) * 30)


def places(net: DenseNEst, *, shift: int = 0) -> list[Tensor]:
    """Pi_0, ..., Pi_L: identity blocks in disjoint rows; `shift` makes them overlap."""
    sizes = [INPUTS, *(len(b) for _, b in net.layers)]
    identity = torch.eye(sum(sizes)).double()
    starts = [max(0, start - shift * (start > 0)) for start in accumulate(sizes[:-1], initial=0)]
    return [identity[:, start : start + size] for start, size in zip(starts, sizes, strict=True)]


def residual_features(net: DenseNEst, maps: list[Tensor], x: Tensor) -> tuple[list[Tensor], Tensor]:
    """v_0, ..., v_L and x_L of the ResNEst."""
    hidden, features = maps[0] @ x, [x]
    for i in range(1, len(maps)):
        seen = torch.cat(maps[:i], dim=1).T @ hidden
        features.append(net.block(i, seen))
        hidden = hidden + maps[i] @ features[-1]
    return features, hidden


def equal(draw: Draw, *, shift: int = 0) -> Iterator[Case]:
    for growth in GROWTHS:
        net = densenest(draw, growth)
        x, _ = net.data(draw)
        for what, given in (("random", x), ("zero", 0 * x), ("large", 1e3 * x)):
            one = net.output(given)
            other = net.head @ residual_features(net, places(net, shift=shift), given)[1]
            steps = net.head.shape[1] ** 2
            yield Case(f"{what} input, D={growth}", apart(one, other, scale=one.norm()), rounding(steps))


def attained(draw: Draw, *, shift: int = 0) -> Iterator[Case]:
    for growth in GROWTHS[:3]:
        net = densenest(draw, growth)
        x, y = net.data(draw)
        maps = places(net, shift=shift)
        basis = Basis(tuple(maps[:-1]), tuple(residual_features(net, maps, x)[0]), y)
        for name, loss in LOSSES.items():
            risk = float(basis.risk(local_minimum(basis, draw, loss), loss))
            error = abs(risk - lowest(basis, loss)) / basis.scale
            yield Case(f"{name}, D={growth}", error, basis.tolerance)


STATEMENTS = (
    Statement(
        part="equal",
        place="Proposition 4, eqs. (40)-(42)",
        text="The ResNEst with W_i = Pi_i has the output of the DenseNEst for every input.",
        check=equal,
        broken=partial(equal, shift=1),
    ),
    Statement(
        part="attained",
        place="Proposition 4",
        text="Its local minima in the prediction weights have epsilon = 0.",
        check=attained,
        broken=partial(attained, shift=3),
    ),
)
