"""Zaeemzadeh et al., Corollary 1: how far a residual block moves the gradient's norm is bounded by its weights.

Sides: ||dE/dx_l|| / ||dE/dx_{l+1}|| by automatic differentiation, for every block and sample; 1 -+ c_rho^2 ||W^(1)||
||W^(2)||. (The proof prints W^(1) in the place of W^(2) once.)
Needs: 0 <= rho' <= c_rho.
"""

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

from leadline.theorems import Aside, Case, Statement
from leadline.theorems._draw import Draw
from leadline.theorems._gradient_norms import outside, ratios
from leadline.theorems._rounding import norm, rounding

SLOPES: dict[str, tuple[Callable[[Tensor], Tensor], float]] = {
    "ReLU": (torch.relu, 1.0),
    "tanh": (torch.tanh, 1.0),
    "sigmoid": (torch.sigmoid, 0.25),
    "identity": (lambda x: x, 1.0),
}
N, WIDE, SAMPLES = 6, 9, 20


def check(draw: Draw, *, steeper: float = 1.0) -> Iterator[Case | Aside]:
    """`steeper` multiplies the slope of rho behind the back of c_rho."""
    for name, (rho, c_rho) in SLOPES.items():
        for depth, size in ((1, 0.3), (5, 3.0), (100, 0.05), (3, 0.0)):
            weights = [(size * draw.normal(WIDE, N) / N, size * draw.normal(N, WIDE) / N) for _ in range(depth)]
            blocks = [partial(_block, first, last, partial(_times, steeper, rho)) for first, last in weights]
            found = ratios(blocks, draw.normal(N, SAMPLES), draw.normal(N, SAMPLES))
            delta = torch.tensor([[c_rho**2 * norm(first) * norm(last)] for first, last in weights]).double()
            yield Case(
                f"{name}, L={depth}, weights {size:g}",
                outside(found, delta),
                rounding(WIDE**2, 1 + float(delta.amax())),
            )
            if size == 0.3:
                used = ((found - 1).abs() / delta).amax()
                yield Aside(f"|ratio - 1| / delta, {name}", float(used))
    eye = torch.eye(N).double()
    blocks = [partial(_block, -0.3 * eye, eye, partial(_times, steeper, SLOPES["identity"][0]))]
    found = ratios(blocks, draw.normal(N, 3), draw.normal(N, 3))
    yield Case("equality: W^(1) = -0.3 I, W^(2) = I", outside(found, 0.3), rounding(N**2))


def _times(factor: float, rho: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    return factor * rho(x)


def _block(first: Tensor, last: Tensor, rho: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """x + W^(2) rho(W^(1) rho(x))."""
    return x + last @ rho(first @ rho(x))


STATEMENTS = (
    Statement(
        place="Corollary 1",
        text="The gradient's norm changes by at most c_rho^2 ||W^(1)|| ||W^(2)|| of it in x + W^(2) rho(W^(1) rho(x)).",
        check=check,
        broken=partial(check, steeper=2.0),
    ),
)
