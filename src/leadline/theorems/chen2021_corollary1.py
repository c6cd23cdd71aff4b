"""Chen et al., Corollary 1: under the bottleneck condition deeper prefixes of a ResNEst have no higher local minima.

Sides: local minima of (P_alpha) and of (P_beta), the same network cut after L_alpha > L_beta blocks, each by Newton's
method from a random start.
Needs: Assumptions 2, 3 and 4 for alpha, and that beta is part of alpha; features of two unrelated networks have no
order.
"""

from collections.abc import Iterator
from functools import partial
from itertools import pairwise

from leadline.theorems import Aside, Case, Statement
from leadline.theorems._draw import Draw
from leadline.theorems._resnest import LOSSES, Basis, local_minimum, resnest
from leadline.theorems._rounding import excess

DEEP = (4, 3, 2, 2)  # the sum without the last is 9


def risks(basis: Basis, draw: Draw, name: str) -> list[float]:
    """Of a local minimum after 1, 2, ... blocks."""
    cuts = [basis.prefix(blocks) for blocks in range(1, len(basis.maps) + 1)]
    return [float(cut.risk(local_minimum(cut, draw, LOSSES[name]), LOSSES[name])) for cut in cuts]


def check(draw: Draw, *, reverse: bool = False) -> Iterator[Case | Aside]:
    for width in (9, 12):
        basis = resnest(draw, width=width, sizes=DEEP)
        for name in LOSSES:
            found = risks(basis, draw, name)
            for blocks, (shallow, deep) in enumerate(pairwise(found), start=1):
                pair = (shallow, deep) if reverse else (deep, shallow)
                error = excess(*pair, scale=basis.scale)
                yield Case(f"{name}, {blocks} and {blocks + 1} blocks, M={width}", error, basis.tolerance)
    narrow = risks(resnest(draw, width=3, sizes=DEEP), draw, "squared")
    rise = max(deep - shallow for shallow, deep in pairwise(narrow))
    yield Aside("largest rise of the risk with one more block, M=3, against Assumption 4", rise)


def unrelated(draw: Draw) -> Iterator[Case]:
    """Two networks on the same data, the deeper one with features that say nothing: constant zero but for x."""
    shallow = resnest(draw, width=9, sizes=DEEP).prefix(1)
    deep = resnest(draw, width=9, sizes=DEEP)
    blank = Basis(deep.maps, (shallow.features[0], *(0 * v for v in deep.features[1:])), shallow.y)
    one, other = (float(b.risk(local_minimum(b, draw))) for b in (blank, shallow))
    yield Case("deeper network of blank features", excess(one, other, scale=shallow.scale), shallow.tolerance)


STATEMENTS = (
    Statement(
        part="nested",
        place="Corollary 1",
        text="Local minima of (P_alpha) are at most those of (P_beta) if beta is the beginning of alpha.",
        check=check,
        broken=partial(check, reverse=True),
    ),
    Statement(
        part="any",
        place="Corollary 1, for any alpha and beta with L_alpha > L_beta",
        text="Local minima of (P_alpha) are at most those of (P_beta) for any two networks.",
        check=unrelated,
        note="the proof takes beta as the beginning of alpha, and so must the statement",
    ),
)
