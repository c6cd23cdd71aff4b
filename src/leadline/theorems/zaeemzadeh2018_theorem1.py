"""Zaeemzadeh et al., Theorem 1: deep residual networks have norm-preserving solutions, at a rate of log(2L)/L.

Sides: residual blocks really built for a given smooth invertible map, their composition, and the gradient norms by
automatic differentiation; the map itself, and 1 -+ c log(2L)/L with c from constants of the map.
Needs: Assumption 1 with det F' > 0 (for other maps, see Theorem 2). With F_a(x) = F(a x) / a and F_0 = F'(0), half of
the blocks are the factors of F'(0), the others F_{a'} o F_a^{-1} for a in equal steps from 0 to 1 (after Bartlett,
Evans and Long). On ||x_1|| <= 1 the derivative of such a block differs from I by at most alpha beta (a' - a).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from leadline.theorems import Aside, Case, Statement
from leadline.theorems._draw import Draw
from leadline.theorems._gradient_norms import Block, outside, ratios, run
from leadline.theorems._near_identity import factors, gamma
from leadline.theorems._rounding import apart, norm, rounding

N, SAMPLES = 4, 12
DEPTHS = (16, 64, 512)


@dataclass(frozen=True)
class Smooth:
    """A map F with F(0) = 0, its inverse and F'(0); alpha and beta of Assumption 1 on the unit ball."""

    forward: Block
    inverse: Block
    linear: Tensor
    alpha: float
    beta: float

    def scaled(self, a: float, x: Tensor) -> Tensor:
        """F_a."""
        return self.forward(a * x) / a if a else self.linear @ x

    def unscaled(self, a: float, y: Tensor) -> Tensor:
        """F_a^{-1}."""
        return self.inverse(a * y) / a if a else torch.linalg.solve(self.linear, y)


def stretched(m: Tensor, q: Tensor) -> Smooth:
    """F(x) = M sinh(Q x): sinh is smooth, invertible, and not bounded."""
    inverse = torch.linalg.inv(m)
    return Smooth(
        forward=lambda x: m @ torch.sinh(q @ x),
        inverse=lambda y: q.T @ torch.asinh(inverse @ y),
        linear=m @ q,
        alpha=norm(m) * math.sinh(1.0),
        beta=norm(inverse),
    )


def sheared(m: Tensor, b: Tensor) -> Smooth:
    """F(u, v) = M (u, v + sin(B u))."""
    half, inverse = len(b), torch.linalg.inv(m)

    def shear(x: Tensor, sign: float) -> Tensor:
        return torch.cat([x[:half], x[half:] + sign * torch.sin(b @ x[:half])])

    linear = torch.eye(2 * half).double()
    linear[half:, :half] = b
    return Smooth(
        forward=lambda x: m @ shear(x, 1.0),
        inverse=lambda y: shear(inverse @ y, -1.0),
        linear=m @ linear,
        alpha=norm(m) * norm(b) ** 2,
        beta=norm(inverse) * (1 + norm(b)),
    )


def maps(draw: Draw, *, sign: int = 1) -> Iterator[tuple[str, Smooth]]:
    flip = torch.ones(N).double()
    flip[0] = sign
    for kappa in (1.0, 5.0):
        m = draw.matrix(N, N, kappa=kappa)
        m = m * torch.where(torch.arange(N) == 0, torch.linalg.det(m).sign(), 1.0) * flip
        yield f"M sinh(Q x), kappa(M) = {kappa:g}", stretched(m, draw.rotation(N))
        yield f"M (u, v + sin(B u)), kappa(M) = {kappa:g}", sheared(m, 0.7 * draw.normal(N // 2, N // 2))


def blocks(smooth: Smooth, depth: int) -> list[Block]:
    steps = (depth + 1) // 2
    linear: list[Block] = [partial(torch.matmul, factor) for factor in factors(smooth.linear, depth - steps)]
    return linear + [partial(_step, smooth, i / steps, (i + 1) / steps) for i in range(steps)]


def _step(smooth: Smooth, a: float, b: float, x: Tensor) -> Tensor:
    """F_b o F_a^{-1}."""
    return smooth.scaled(b, smooth.unscaled(a, x))


def constant(smooth: Smooth) -> float:
    """c of this construction: 2 alpha beta for the steps, three times Theorem 2's for the factors (at least L/3)."""
    return max(2 * smooth.alpha * smooth.beta, 6 * (math.sqrt(math.pi) + math.sqrt(3 * gamma(smooth.linear))) ** 2)


def check(draw: Draw, *, sign: int = 1) -> Iterator[Case | Aside]:
    for what, smooth in maps(draw, sign=sign):
        x = draw.unit(N, SAMPLES) * draw.uniform(1, SAMPLES, low=0.0, high=1.0) ** (1 / N)
        x[:, 0], x[:, 1] = 0.0, x[:, 1] / x[:, 1].norm()
        growth = (1 + smooth.alpha) * (1 + smooth.beta) * (1 + norm(smooth.linear))
        for depth in DEPTHS:
            network = blocks(smooth, depth)
            y, target = run(network, x), smooth.forward(x)
            yield Case(
                f"composition, {what}, L={depth}",
                apart(y, target, scale=target.norm()),
                rounding(depth * N**2, growth**2),
            )
            found = ratios(network, x, draw.normal(N, SAMPLES))
            delta = constant(smooth) * math.log(2 * depth) / depth
            yield Case(f"gradients, {what}, L={depth}", outside(found, delta), rounding(N**2, growth**2))
            yield Aside(f"max |ratio - 1| L, {what}, L={depth}", float((found - 1).abs().amax()) * depth)


def printed_constant(draw: Draw) -> Iterator[Case | Aside]:
    """F = k I has alpha = 0, beta = 1/k, and needs (1 + delta)^L >= k: the c_1 that takes, over that of a small k."""
    depth, first = 16, float(draw.uniform(1, low=1.5, high=3.0))

    def needed(k: float) -> float:
        return math.expm1(math.log(k) / depth) * depth / math.log(2 * depth) / (2 / k)

    for times in (1.0, 10.0, 1e3, 1e6):
        c1 = needed(times * first)
        yield Case(f"F = {times:g} times the first, L={depth}", c1 / needed(first) - 1, rounding(100))
        yield Aside(f"c_1 needed for F = k I, k = {times:g} times 1.5 to 3, L={depth}", c1)


STATEMENTS = (
    Statement(
        part="construction",
        place="Theorem 1",
        text="A smooth invertible map with det F' > 0 is a composition of L residual blocks whose gradient norms keep "
        "to 1 -+ c log(2L)/L.",
        check=check,
        broken=partial(check, sign=-1),
        note="this construction even has c/L on bounded inputs, as the asides show",
    ),
    Statement(
        part="constant",
        place="Theorem 1, the constant c",
        text="c = c_1 max(alpha beta (1 + beta), beta (2 + alpha) + alpha) with one c_1 for all maps and depths.",
        check=printed_constant,
        note="a large linear map has small alpha and beta; c also has to grow with ||F'||",
    ),
)
