"""Zaeemzadeh et al., Theorem 3: the singular values of a convolution are those of its frequencies.

Sides: the singular values of the dense matrix of the convolution, entry by entry; of all P^(u,v) from the Fourier
transform.
Needs: circular padding. The networks pad with zeros; the asides say how far off that is.
"""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from leadline.theorems import Aside, Case, Statement
from leadline.theorems._convolution import by_frequency, dense
from leadline.theorems._draw import Draw
from leadline.theorems._rounding import rounding

SHAPES = ((6, 3, 2, 3), (5, 3, 3, 2), (4, 1, 2, 4), (3, 3, 1, 1), (7, 2, 1, 3), (1, 1, 3, 2))  # n, k, c, d


def apart(kernel: Tensor, n: int, *, circular: bool) -> float:
    """Between the two sorted lists, over the largest."""
    one = torch.linalg.svdvals(dense(kernel, n, circular=circular))
    other = torch.linalg.svdvals(by_frequency(kernel, n)).flatten().sort(descending=True)[0]
    return float((one - other).abs().amax() / (one[0] if one[0] else 1))


def check(draw: Draw, *, circular: bool = True) -> Iterator[Case | Aside]:
    for n, k, c, d in SHAPES:
        kernels = {"random": draw.normal(d, c, k, k), "zero": torch.zeros(d, c, k, k).double()}
        kernels["rank-deficient"] = kernels["random"][:1].expand(d, c, k, k)
        for what, kernel in kernels.items():
            error = apart(kernel, n, circular=circular)
            yield Case(f"{what}, n={n}, {k}x{k}, {c} to {d}", error, rounding(4 * (n**2 * max(c, d)) ** 2))
    for n in (6, 12):
        yield Aside(
            f"zero padding instead, 3x3, n={n}, relative distance", apart(draw.normal(2, 2, 3, 3), n, circular=False)
        )


STATEMENTS = (
    Statement(
        place="Theorem 3",
        text="The singular values of a circular convolution are the union of those of its n^2 matrices P^(u,v).",
        check=check,
        broken=partial(check, circular=False),
    ),
)
