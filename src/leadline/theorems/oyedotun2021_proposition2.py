"""Oyedotun et al., Proposition 2: a singular matrix loses information, its pseudo-inverse does not bring v back.

Sides: v - M^+ M v from the pseudo-inverse; the part of v in the null space of M, known by construction. And two
different vectors with one image.
Needs: nothing. Vectors without a part in the null space come back; those are exceptions of measure zero.
"""

from collections.abc import Iterator

from torch import Tensor

from leadline.theorems import Case, Statement
from leadline.theorems._draw import Draw
from leadline.theorems._rounding import apart, norm, rounding, strictly

KAPPA = 100.0


def instances(draw: Draw, least: float) -> dict[str, tuple[Tensor, Tensor]]:
    """M and an orthonormal basis of what it should lose; `least` in the place of its zero singular values."""
    found = {}
    for n, lost in ((1, 1), (5, 1), (8, 4), (20, 19), (6, 6)):
        left, right = draw.orthogonal(n), draw.orthogonal(n)
        sigma = draw.uniform(n, low=1 / KAPPA, high=1.0)
        sigma[n - lost :] = least
        found[f"n={n}, rank {n - lost}"] = ((left * sigma) @ right.T, right[:, n - lost :])
    return found


def check(draw: Draw, *, least: float = 0.0) -> Iterator[Case]:
    for what, (matrix, null) in instances(draw, least).items():
        n = len(matrix)
        v = draw.normal(n, 1)
        back = matrix.pinverse(rcond=rounding(n**2)) @ (matrix @ v)
        part = null @ (null.T @ v)
        yield Case(f"v - M^+ M v, {what}", apart(v - back, part, scale=v.norm()), rounding(n**2, KAPPA))
        yield Case(f"something is lost, {what}", strictly(rounding(n**2, KAPPA) * v.norm(), (v - back).norm()), 0.0)
        images = apart(matrix @ (v + null[:, :1]), matrix @ v, scale=max(norm(matrix), rounding(1)))
        yield Case(f"two vectors, one image, {what}", images, rounding(n**2, 1 + float(v.norm())))


STATEMENTS = (
    Statement(
        place="Proposition 2",
        text="If M is singular, M^+ M v misses the part of v in the null space of M: v is not known from M v.",
        check=check,
        broken=lambda draw: check(draw, least=1 / KAPPA),
    ),
)
