"""Li et al., Lemma 4: at zero, a second derivative depends on two units only through whether they are the same.

Sides: L_0 with two weights in units r_1 <= r_2; L_0 with the same weights in units 1 and 1 or 2. As functions of the
two weights, and as blocks of the Hessian at zero.
Needs: sigma_mid(0) = sigma_post(0) = 0 and skips that are the identity.
"""

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

from leadline.linalg.hessian import dense_hessian
from leadline.theorems import Case, Statement
from leadline.theorems._draw import Draw
from leadline.theorems._rounding import apart, largest, rounding
from leadline.theorems._shortcut_net import AT_ZERO, Net, activated

D, SAMPLES, UNITS = 2, 5, 4
Skip = Callable[[Tensor, int], Tensor]


def with_two(shape: tuple[int, ...], first: tuple[int, ...], second: tuple[int, ...], values: Tensor) -> Tensor:
    """All weights zero but two."""
    weights = torch.zeros(shape).double()
    weights[first], weights[second] = values
    return weights


def check(draw: Draw, *, skip: Skip | None = None) -> Iterator[Case]:
    for name in AT_ZERO:
        chosen, _ = activated(name, "all")
        for n in (1, 2, 3):
            net = Net(x=draw.normal(D, SAMPLES), y=draw.normal(D, SAMPLES), **chosen)
            net = Net(x=net.x, y=net.y, **chosen, skip=skip) if skip else net
            shape = (UNITS, n, D, D)
            yield Case(f"functions, {name}, n={n}", functions_apart(net, shape, draw), rounding(10 * n * UNITS * D))
            size = n * D * D
            zero = torch.zeros(shape).double()
            blocks = dense_hessian(net.loss, zero).reshape(UNITS, size, UNITS, size).transpose(1, 2)
            scale = max(float(blocks.abs().amax()), float((net.x - net.y).norm() * net.x.norm()) / SAMPLES)
            pairs = [(r, s) for r in range(UNITS) for s in range(r, UNITS)]
            worst = largest(apart(blocks[r, s], blocks[0, int(r != s)], scale=scale) for r, s in pairs)
            yield Case(f"Hessian blocks, {name}, n={n}", worst, rounding(10 * UNITS * D * SAMPLES))


def functions_apart(net: Net, shape: tuple[int, ...], draw: Draw) -> float:
    """max |L_0(a, b) - L_0'(a, b)| / L_0 over places of the two weights."""
    found = []
    for r, s in ((0, 2), (1, 3), (2, 2), (3, 3)):
        (l1, l2), (i1, j1, i2, j2) = draw.whole(0, shape[1], 2).int().tolist(), draw.whole(0, D, 4).int().tolist()
        values = draw.normal(2)
        here = net.loss(with_two(shape, (r, l1, i1, j1), (s, l2, i2, j2), values))
        there = net.loss(with_two(shape, (0, l1, i1, j1), (int(r != s), l2, i2, j2), values))
        found.append(float((here - there).abs() / here))
    return largest(found)


def fading(h: Tensor, r: int) -> Tensor:
    """A skip that is not the identity, another one in each unit."""
    return h * (1 - 0.1 * (r + 1))


STATEMENTS = (
    Statement(
        place="Lemma 4",
        text="With all other weights zero, the loss in two weights depends on their units only by r_1 = r_2 or not.",
        check=check,
        broken=partial(check, skip=fading),
    ),
)
