"""Zaeemzadeh et al., Algorithm 1: steps 2 to 5 make a convolution norm-preserving again.

Sides: the non-zero singular values of the convolution's dense matrix after the steps; sqrt(d / min(d, c)).
Needs: a kernel as large as the map, or 1x1 (one matrix at all frequencies). For k x k kernels in between, the inverse
transform has n x n taps of which k x k are kept, and cutting undoes part of the projection.
"""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from leadline.theorems import Aside, Case, Statement
from leadline.theorems._convolution import by_frequency, dense, from_frequency, polar, target
from leadline.theorems._draw import Draw
from leadline.theorems._rounding import kappa, norm, rounding

FULL = ((4, 4, 2, 3), (5, 5, 3, 3), (3, 3, 4, 2), (6, 1, 3, 5), (6, 1, 4, 4), (4, 1, 5, 2), (1, 1, 2, 3))  # n, k, c, d
CROPPED = ((6, 3, 2, 20), (6, 3, 2, 4), (6, 3, 3, 3), (5, 2, 3, 5))


def project(kernel: Tensor, n: int, *, scale: float = 1.0) -> Tensor:
    """Steps 2-5, complex so that the imaginary part can be looked at."""
    return from_frequency(scale * polar(by_frequency(kernel, n), target(kernel)), n, kernel.shape[-1])


def worst(kernel: Tensor, n: int) -> float:
    """max |sigma / target - 1| over the min(c, d) n^2 singular values of the dense operator."""
    return float((torch.linalg.svdvals(dense(kernel, n)) / target(kernel) - 1).abs().amax())


def whole(draw: Draw, *, scale: float = 1.0) -> Iterator[Case]:
    for n, k, c, d in FULL:
        kernel = draw.normal(d, c, k, k)
        found = project(kernel, n, scale=scale)
        what, steps = f"n={n}, {k}x{k}, {c} to {d}", float(4 * (n * n * max(c, d)) ** 2)
        grown = max(map(kappa, by_frequency(kernel, n)))
        yield Case(f"singular values, {what}", worst(found.real, n), rounding(steps, grown))
        yield Case(f"real, {what}", float(found.imag.norm() / found.real.norm()), rounding(steps, grown))
        again = project(found.real, n).real
        yield Case(f"twice is once, {what}", norm((again - found.real / scale).flatten(1)), rounding(steps, grown))


def printed(draw: Draw) -> Iterator[Case | Aside]:
    yield from whole(draw)
    for n, k, c, d in CROPPED:
        kernel, what = draw.normal(d, c, k, k), f"{k}x{k} of n={n}, {c} to {d}"
        kernel = project(kernel, n).real
        yield Case(f"singular values, {what}", worst(kernel, n), rounding(4 * (n * n * max(c, d)) ** 2))
        yield Aside(f"max |sigma / target - 1| after one projection, {what}", worst(kernel, n))
        for _ in range(19):
            kernel = project(kernel, n).real
        yield Aside(f"after twenty, {what}", worst(kernel, n))


STATEMENTS = (
    Statement(
        part="printed",
        place="Algorithm 1",
        text="After steps 2-5 all non-zero singular values of a k x k convolution are sqrt(d / min(d, c)).",
        check=printed,
        note="cutting the inverse transform to k x k undoes part of it; with d well above c, repeating both helps",
    ),
    Statement(
        part="full",
        place="Algorithm 1, k = n or k = 1",
        text="They are for 1x1 kernels and for kernels as large as the map, and the updated kernel is real.",
        check=whole,
        broken=partial(whole, scale=1.1),
    ),
)
