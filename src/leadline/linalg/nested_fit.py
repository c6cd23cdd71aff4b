"""Least-squares heads on every prefix of a list of features, from one Gram matrix that may be streamed.

With features V = [1 v_0 v_1 ... v_L] (N x D) and G = V^T V / N = U^T U (U upper triangular), the prefix k has the
factor U_k, the leading block of U. With Z = U^-T V^T Y / N the risk of its best head falls out of a running sum,

    min_H (1/2N) |Y - V_k H|^2 = (1/2N) |Y|^2 - (1/2) sum_{d <= D_k} |Z_d|^2,

so all prefixes cost one factorisation. The lower bound of Chen et al., Proposition 2, is this number. A feature that
earlier ones predict (its pivot at the rounding of its square) is left out, and how much of every block is not
linearly predictable from what came before (their section 2.4) is read off the same pivots.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import torch
from torch import Tensor
from torch.linalg import solve_triangular

from leadline.core.errors import UsageError
from leadline.linalg import memory

Batch = tuple[Sequence[Tensor], Tensor]  # features (n, width), block by block; targets (n, outputs) or labels (n,)


@dataclass(frozen=True, kw_only=True)
class FeatureGram:
    """G = V^T V / N, V^T Y / N and |Y|^2 / N in float64 over `count` samples; `widths` include the constant feature."""

    gram: Tensor
    cross: Tensor
    target: float
    count: int
    widths: tuple[int, ...]
    bias: bool
    dtype: str

    @property
    def ends(self) -> tuple[int, ...]:
        """The number of columns in every prefix."""
        return tuple(accumulate(self.widths))


def feature_gram(batches: Iterable[Batch], *, classes: int | None = None, bias: bool = True) -> FeatureGram:
    """One pass over `batches` (best of 512 samples or more); labels become one-hot targets over `classes`.

    With `bias` a constant feature joins the first block.
    """
    sums: tuple[Tensor, Tensor] | None = None
    widths: tuple[int, ...] = ()
    count, square, dtype = 0, 0.0, ""
    for features, targets in batches:
        columns = stack(features, bias=bias)
        wanted = one_hot(targets, classes) if classes or not targets.is_floating_point() else targets.double()
        found = _widths(features, bias)
        if sums is None:
            widths, dtype = found, str(columns.dtype).removeprefix("torch.")
            sums = _zeros(columns, wanted)
        if found != widths or wanted.shape != (len(columns), sums[1].shape[1]):
            raise UsageError(f"expected blocks of widths {widths} and {sums[1].shape[1]} outputs; got {found}")
        _accumulate(sums, columns.double(), wanted)
        count, square = count + len(columns), square + float((wanted**2).sum())
    if sums is None or not count:
        raise UsageError("expected at least one sample; the batches hold none")
    gram, cross = (sums[0].triu() + sums[0].triu(1).T) / count, sums[1] / count
    if not (torch.isfinite(gram.sum()) and torch.isfinite(cross.sum())):
        raise UsageError("the features or targets hold NaN or inf; no head can be fitted to them")
    return FeatureGram(
        gram=gram, cross=cross, target=square / count, count=count, widths=widths, bias=bias, dtype=dtype
    )


def stack(features: Sequence[Tensor], *, bias: bool) -> Tensor:
    """V of one batch, (n, D): the constant first, then the blocks."""
    for block in features:
        if block.ndim != 2 or not block.is_floating_point() or len(block) != len(features[0]):
            raise UsageError(f"expected floating-point features (n, width); got {tuple(block.shape)} of {block.dtype}")
    if not features:
        raise UsageError("expected at least one block of features; got none")
    constant = [torch.ones_like(features[0][:, :1])] if bias else []
    return torch.cat([*constant, *features], dim=1).detach()


def one_hot(labels: Tensor, classes: int | None) -> Tensor:
    """(n, classes) float64 from integer labels (n,)."""
    if classes is None or labels.is_floating_point() or labels.ndim != 1:
        raise UsageError(f"expected integer labels (n,) and their number of classes; got {labels.dtype}, {classes}")
    if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < classes:
        raise UsageError(f"expected labels from 0 to {classes - 1}; got {int(labels.min())} to {int(labels.max())}")
    return torch.nn.functional.one_hot(labels.long(), classes).double()


def _widths(features: Sequence[Tensor], bias: bool) -> tuple[int, ...]:
    first, *others = (block.shape[1] for block in features)
    return (first + bias, *others)


def _zeros(columns: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    size = columns.shape[1]
    memory.require(
        4 * 8 * size * size,  # the sum, its symmetric mean, the factor and room to work
        f"the Gram matrix of {size:,} features and its factor",
        instead="pool the features or take fewer blocks",
        device=columns.device,
    )
    gram = torch.zeros(size, size, dtype=torch.float64, device=columns.device)
    return gram, gram.new_zeros(size, wanted.shape[1])


def _accumulate(sums: tuple[Tensor, Tensor], columns: Tensor, wanted: Tensor) -> None:
    """Adds V^T V on and above the diagonal, by eighths, and V^T Y."""
    gram, cross = sums
    size = columns.shape[1]
    for start, stop in pairwise(size * eighth // 8 for eighth in range(9)):
        gram[start:stop, start:].addmm_(columns[:, start:stop].T, columns[:, start:])
    cross.addmm_(columns.T, wanted)


@dataclass(frozen=True, kw_only=True)
class NestedFactor:
    """G on the `kept` columns = U^T U, whose leading ranks[k] x ranks[k] block belongs to prefix k.

    `unpredictable[b]` is the share of block b's variance that no linear map of the earlier blocks gives.
    """

    upper: Tensor
    kept: Tensor
    ranks: tuple[int, ...]
    unpredictable: tuple[float, ...]
    tolerance: float
    sharpness: float


def factorise(moments: FeatureGram, *, ridge: float = 0.0) -> NestedFactor:
    """Left-looking block Cholesky of G + `ridge` I that leaves out what earlier features predict.

    A pivot is the mean square of what is left of a feature. At max(100 D eps64, (32 eps(dtype))^2) of the mean square
    of the feature itself it is the rounding of the factor or of the data and taken for zero. `sharpness` is the least
    root of that ratio among the kept: about one over the condition of V.
    """
    gram = moments.gram
    size = len(gram)
    eps64, eps = torch.finfo(torch.float64).eps, torch.finfo(getattr(torch, moments.dtype)).eps
    tolerance = max(100 * size * eps64, (32 * eps) ** 2)
    rows = torch.zeros_like(gram)
    kept: list[int] = []
    ranks, shares, sharpness = [], [], 1.0
    for start, stop in pairwise((0, *moments.ends)):
        done = len(kept)
        rest = gram[start:stop, start:] - rows[:done, start:stop].T @ rows[:done, start:]
        square = rest[:, : stop - start]
        shares.append(_share(square.diagonal(), gram[start:stop], start, moments.bias))
        square.diagonal().add_(ridge)
        scale = gram.diagonal()[start:stop] + ridge
        chosen, pivots = _independent(square, scale, tolerance)
        if len(chosen):
            sharpness = min(sharpness, float((pivots / scale[chosen]).min().sqrt()))
            root = torch.linalg.cholesky(square[chosen][:, chosen])
            rows[done : done + len(chosen), start:] = solve_triangular(root, rest[chosen], upper=False)
        kept += (chosen + start).tolist()
        ranks.append(len(kept))
    columns = torch.tensor(kept, dtype=torch.long, device=gram.device)
    return NestedFactor(
        upper=rows[: len(kept)][:, columns],
        kept=columns,
        ranks=tuple(ranks),
        unpredictable=tuple(shares),
        tolerance=tolerance,
        sharpness=sharpness,
    )


def _share(left: Tensor, own: Tensor, start: int, bias: bool) -> float:
    """What is left of a block's energy over what it had, both without the mean if there is a constant feature."""
    if start == 0:
        return 1.0
    energy = own.diagonal(start).sum() - (own[:, 0].square().sum() if bias else 0)
    return float((left.sum() / energy).clamp(0, 1)) if energy > 0 else 0.0


def _independent(square: Tensor, scale: Tensor, tolerance: float) -> tuple[Tensor, Tensor]:
    """(columns that earlier ones do not predict, their pivots): all of them, or chosen one by one in order."""
    root, failed = torch.linalg.cholesky_ex(square)
    pivots = root.diagonal() ** 2
    if not failed and bool((pivots > tolerance * scale).all()):
        return torch.arange(len(square), device=square.device), pivots
    left, chosen, values = square.clone(), [], []
    for column in range(len(left)):
        pivot = float(left[column, column])
        if pivot > tolerance * float(scale[column]):
            chosen.append(column)
            values.append(pivot)
            left -= torch.outer(left[:, column], left[column]) / pivot
    return torch.tensor(chosen, dtype=torch.long, device=square.device), square.new_tensor(values)


def inside(factor: NestedFactor) -> Tensor:
    """Which whitened directions every prefix has: (directions, prefixes, 1) of 0 and 1."""
    places = torch.arange(len(factor.kept), device=factor.upper.device)[:, None]
    return (places < torch.tensor(factor.ranks, device=places.device)).to(factor.upper)[:, :, None]


def unwhiten(factor: NestedFactor, theta: Tensor) -> Tensor:
    """H = U^-1 theta, (kept columns, prefixes, outputs); what is zero beyond a prefix stays zero there."""
    heads: Tensor = solve_triangular(factor.upper, theta.flatten(1), upper=True)
    return heads.view(theta.shape)


def whiten_slope(factor: NestedFactor, slope: Tensor) -> Tensor:
    """The gradient in theta from that in H, U^-T slope; what a prefix does not have is to be masked with `inside`."""
    turned: Tensor = solve_triangular(factor.upper.T, slope.flatten(1), upper=False)
    return turned.view(slope.shape)


def spread(factor: NestedFactor, heads: Tensor, size: int) -> Tensor:
    """Heads over all `size` columns, (prefixes, size, outputs), zero for the columns that were left out."""
    everywhere = heads.new_zeros(heads.shape[1], size, heads.shape[2])
    everywhere[:, factor.kept] = heads.movedim(1, 0)
    return everywhere


@dataclass(frozen=True, kw_only=True)
class LeastSquaresFits:
    """Per prefix the data risk (1/2N) |Y - V_k H|^2 of the best head, and `objective` = risk + (ridge/2) |H|^2.

    `lower_bound` = objective at the stored head - |U_k^-T g|^2 / 2 with its gradient g: what the minimum is in exact
    arithmetic. `heads` is (prefixes, D, outputs), zero beyond the prefix and for columns that earlier ones predict;
    `ranks` counts the others.
    """

    risk: tuple[float, ...]
    objective: tuple[float, ...]
    lower_bound: tuple[float, ...]
    heads: Tensor
    ranks: tuple[int, ...]
    unpredictable: tuple[float, ...]
    ridge: float
    tolerance: float
    count: int
    dtype: str


def prefix_objectives(moments: FeatureGram, factor: NestedFactor) -> Tensor:
    """The least objective of every prefix by the running sum, without any head: (prefixes,)."""
    z = solve_triangular(factor.upper.T, moments.cross[factor.kept], upper=False)
    gained = torch.cat([z.new_zeros(1), z.square().sum(1).cumsum(0)])
    return (moments.target - gained[torch.tensor(factor.ranks, device=z.device)]) / 2


def least_squares_prefixes(moments: FeatureGram, *, ridge: float = 0.0) -> LeastSquaresFits:
    """Heads, risks and certificates of all prefixes."""
    if ridge < 0:
        raise UsageError(f"expected a ridge of at least 0; got {ridge}")
    factor = factorise(moments, ridge=ridge)
    cross = moments.cross[factor.kept][:, None]  # (columns, 1, outputs)
    z = solve_triangular(factor.upper.T, cross[:, 0], upper=False)
    mask = inside(factor)
    heads = unwhiten(factor, z[:, None] * mask)
    image = (factor.upper.T @ (factor.upper @ heads.flatten(1))).view(heads.shape)
    short = whiten_slope(factor, image - cross) * mask
    reached = moments.target / 2 + (heads * (image / 2 - cross)).sum((0, 2))
    return LeastSquaresFits(
        risk=tuple((reached - ridge * heads.square().sum((0, 2)) / 2).tolist()),
        objective=tuple(reached.tolist()),
        lower_bound=tuple((reached - short.square().sum((0, 2)) / 2).tolist()),
        heads=spread(factor, heads, len(moments.gram)),
        ranks=factor.ranks,
        unpredictable=factor.unpredictable,
        ridge=ridge,
        tolerance=factor.tolerance,
        count=moments.count,
        dtype=moments.dtype,
    )
