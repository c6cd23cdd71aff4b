"""Chen et al., section 3.2: the bottleneck condition M >= K_0 + ... + K_{L-1} and the Assumption 4 it stands for.

Sides: the rank of [W_0 ... W_{L-1}], and a second solution of x_{L-1} = sum_i W_i v_i where there is one; the number of
columns, and M.
Needs: nothing for the necessity. For the other direction the columns have to be independent, which almost all are.
"""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from leadline.theorems import Aside, Case, Statement
from leadline.theorems._draw import Draw
from leadline.theorems._resnest import SIZES, local_minimum, lowest, resnest
from leadline.theorems._rounding import apart, norm, rounding, unless

COLUMNS = sum(SIZES[:-1])


def unique(columns: Tensor) -> bool:
    """Does x = [W_0 ... W_{L-1}] v have one solution v at most?"""
    sigma = torch.linalg.svdvals(columns)
    full = len(columns) >= columns.shape[1]
    return full and bool(sigma[-1] > rounding(max(columns.shape) ** 2) * sigma[0])


def necessary(draw: Draw, *, widths: tuple[int, ...] = (1, 3, 5, COLUMNS - 1)) -> Iterator[Case | Aside]:
    """Below the condition two different sets of features give one x_{L-1}."""
    for width in widths:
        basis = resnest(draw, width=width)
        v = torch.cat(basis.features[:-1])
        other = v + torch.linalg.svd(basis.columns)[2][-1:].T
        error = apart(basis.columns @ other, basis.columns @ v, scale=norm(basis.columns) * v.norm())
        yield Case(f"two solutions, M={width}", error, rounding(COLUMNS**2))
        yield Case(f"rank, M={width}", unless(not unique(basis.columns)), 0.0)
    for width in (3, 4, 5, 6, 7, 8):
        basis = resnest(draw, width=width)
        risk = float(basis.risk(local_minimum(basis, draw)))
        yield Aside(f"epsilon of a local minimum, M={width}, K=4,3,2", (risk - lowest(basis)) / basis.scale)


def sufficient(draw: Draw, *, dependent: bool) -> Iterator[Case]:
    """At and above the condition; `dependent` puts W_1 into the span of W_0."""
    for width in (COLUMNS, COLUMNS + 5, 10 * COLUMNS):
        maps = list(resnest(draw, width=width).maps)
        yield Case(f"random maps, M={width}", unless(unique(torch.cat(maps, dim=1))), 0.0)
        if dependent:
            maps[1] = maps[0] @ draw.normal(SIZES[0], SIZES[1])
            yield Case(f"W_1 in the span of W_0, M={width}", unless(unique(torch.cat(maps, dim=1))), 0.0)


STATEMENTS = (
    Statement(
        part="necessary",
        place="section 3.2",
        text="If M < K_0 + ... + K_{L-1}, x_{L-1} does not determine the features: Assumption 4 is false.",
        check=necessary,
        broken=partial(necessary, widths=(COLUMNS, COLUMNS + 3)),
    ),
    Statement(
        part="sufficient",
        place="section 3.2, as worded",
        text="If M >= K_0 + ... + K_{L-1}, Assumption 4 holds.",
        check=partial(sufficient, dependent=True),
        note="the columns must also be independent: true of almost all W_i, so check the rank",
    ),
    Statement(
        part="almost_always",
        place="section 3.1, after Corollary 2",
        text="If M >= K_0 + ... + K_{L-1}, Assumption 4 holds for random W_i.",
        check=partial(sufficient, dependent=False),
        broken=partial(sufficient, dependent=True),
    ),
)
