"""Condition numbers under one policy: what counts as lost, what as infinite, and how far kappa is known.

The policy, in this order:

1. Structure. Rows or columns that are exactly zero or exactly repeated lose directions exactly: kappa = inf.
2. Precision. Data produced in a format of machine epsilon eps carry rounding noise E with
   ||E||_2 <= C eps sigma_max (sqrt m + sqrt n) / sqrt(max(m, n)) =: tol sigma_max. A singular value at or below
   that cannot be told from zero: it is lost, and kappa is only known to exceed 1/tol (printed "> 1/tol").
3. Everything above is a number: kappa = sigma_max / sigma_min over all min(m, n) singular values, from float64.

The bound of random rounding grows with the shape by at most a factor two; the usual max(m, n) eps would call a
65,536 x 128 single-precision matrix of kappa 130 singular.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import torch
from torch import Tensor

from leadline.core.errors import UsageError, unknown
from leadline.linalg.gram import CHUNK, gram, root_eigenvalues, small_grams, triangle

ROUNDING_FACTOR = 4.0  # C of the policy: rounding the entries alone needs about 0.3, the rest is room for arithmetic
STACK = CHUNK // 2  # elements of the weights taken together: in float64 they fit where the pieces do
GRAM_LIMIT = 1e4  # a float64 Gram matrix gives kappa to about kappa^2 eps: 1e-8 here, useless from 1e8


@dataclass(frozen=True, kw_only=True)
class Condition:
    """kappa = sigma_max / sigma_min of an m x n matrix, how far it is known, and what is lost.

    `bounded`: kappa is a lower bound, 1/tol. `rank` + `lost` = min(m, n); `structural` of the lost are lost exactly,
    `dead` counts all-zero rows (channels, filters, samples). `kappa_kept` is kappa over the directions not lost.
    `dtype` is what the data were produced in, `tolerance` is relative to sigma_max.

    >>> str(condition([4.0, 2.0], shape=(2, 2), dtype=torch.float32))
    '2'
    >>> str(condition([1.0, 1e-9], shape=(2, 2), dtype=torch.float32))
    '> 1.05e+06'
    """

    kappa: float
    bounded: bool
    rank: int
    lost: int
    structural: int
    dead: int
    kappa_kept: float
    sigma_max: float
    sigma_min: float
    shape: tuple[int, int]
    tolerance: float
    dtype: str
    method: str
    note: str

    def __str__(self) -> str:
        return f"{'> ' if self.bounded else ''}{self.kappa:.3g}"


@lru_cache(maxsize=4096)
def rounding_tolerance(shape: tuple[int, int], dtype: torch.dtype) -> float:
    """tol = C eps (sqrt m + sqrt n) / sqrt(max(m, n)): how far rounding to `dtype` moves a sigma, over sigma_max."""
    m, n = shape
    return ROUNDING_FACTOR * torch.finfo(dtype).eps * (math.sqrt(m) + math.sqrt(n)) / math.sqrt(max(m, n))


def method_floor(shape: tuple[int, int], method: str) -> float:
    """The smallest sigma / sigma_max a float64 `method` tells from zero: its rounding, for a Gram the root of it."""
    floor = rounding_tolerance(shape, torch.float64)
    return math.sqrt(floor) if method == "gram64" else floor


def condition(
    sigma: Tensor | Sequence[float],
    *,
    shape: tuple[int, int],
    dtype: torch.dtype,
    method: str = "svd64",
    tolerance: float | None = None,
    structural: int = 0,
    dead: int = 0,
    note: str = "",
) -> Condition:
    """The policy applied to a spectrum; `dtype` is that of the data, not of the computation.

    `sigma` holds all singular values in any order (of an operator given by frequencies: those of every frequency,
    with the shape of one). `tolerance` replaces the rounding bound where the noise of the data is known.
    `structural` directions are known to be lost exactly.
    """
    values = sorted(sigma.detach().flatten().tolist() if isinstance(sigma, Tensor) else sigma)
    if not values:
        raise UsageError("a condition number needs at least one singular value; got none")
    finite = all(map(math.isfinite, values))
    values[:structural] = [0.0] * min(structural, len(values))
    low, top = (values[0], values[-1]) if finite else (math.nan, math.nan)
    floor = method_floor(shape, method)
    tol = max(floor, rounding_tolerance(shape, dtype) if tolerance is None else tolerance)
    kept = values if low > tol * top else [value for value in values if value > tol * top]
    lost = len(values) - len(kept) if finite else 0
    exact = finite and (top == 0 or structural > 0 or (low <= floor * top and floor < tol / 1000))
    name = str(dtype).removeprefix("torch.")
    return Condition(
        kappa=math.inf if exact else 1 / tol if lost else top / low,
        bounded=lost > 0 and not exact,
        rank=len(kept),
        lost=lost,
        structural=structural,
        dead=dead,
        kappa_kept=top / kept[0] if kept else math.nan,
        sigma_max=top,
        sigma_min=low,
        shape=shape,
        tolerance=tol,
        dtype=name,
        method=method,
        note="; ".join(filter(None, (_reason(finite, top, exact, lost, name), note))),
    )


def _reason(finite: bool, top: float, exact: bool, lost: int, dtype: str) -> str:
    if not finite:
        return "not finite"
    if top == 0:
        return "zero matrix"
    if exact:
        return f"exactly singular, {lost} lost"
    return f"{lost} not told from zero in {dtype}" if lost else ""


def matrix_condition(matrix: Tensor, *, tolerance: float | None = None, note: str = "") -> Condition:
    """kappa of one real or complex matrix by float64 SVD; its structure is looked at where that says kappa > 1e4."""
    matrix = _checked(matrix)
    if matrix.ndim != 2:
        raise UsageError(f"expected a matrix; got a tensor of shape {tuple(matrix.shape)}")
    wide = matrix.to(torch.complex128 if matrix.is_complex() else torch.float64)
    finite = bool(torch.isfinite(wide).all())
    sigma = torch.linalg.svdvals(wide) if finite else torch.full((1,), math.nan)
    lost, dead = structure(matrix) if sigma[-1] * GRAM_LIMIT <= sigma[0] else (0, 0)
    shape = (matrix.shape[0], matrix.shape[1])
    return condition(sigma, shape=shape, dtype=matrix.dtype, tolerance=tolerance, structural=lost, dead=dead, note=note)


def structure(matrix: Tensor) -> tuple[int, int]:
    """(directions lost exactly, zero rows): zero and repeated rows and columns bound the rank from above.

    >>> structure(torch.tensor([[1.0, 2.0], [0.0, 0.0]]))
    (1, 1)
    """
    m, n = matrix.shape
    rank = min(_distinct(matrix, n), _distinct(matrix.T, m))
    return max(0, min(m, n) - rank), m - int((matrix != 0).any(1).sum())


def _distinct(rows: Tensor, enough: int) -> int:
    """How many different non-zero rows there are; any count from `enough` on may be returned as soon as it is sure."""
    rows = torch.view_as_real(rows).flatten(1) if rows.is_complex() else rows
    count = 0
    for part in (rows[: 4 * enough], rows):
        alive = part[(part != 0).any(1)]
        count = torch.unique(alive, dim=0).shape[0] if alive.shape[0] else 0
        if count >= enough or part.shape == rows.shape:
            break
    return count


def hosvd_conditions(weights: Sequence[Tensor]) -> list[tuple[Condition, ...]]:
    """For every weight, of any order, the condition of each mode's unfolding (d_k x the rest), as in the HOSVD.

    Same-shape weights are taken together: one float64 Gram matrix per mode, the trailing (spatial) modes from one
    joint Gram by partial traces, all Gram matrices of a size in one eigenvalue call. Where that shows kappa > 1e4 the
    mode is done again by SVD with its structure. A mode of size 1 has kappa 1; a matrix has one spectrum for both.
    Oyedotun et al. print one number per layer: `headline`.
    """
    weights = [_checked(weight, real=True) for weight in weights]
    grams: dict[int, list[Tensor]] = defaultdict(list)
    places: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for members, stack in _stacks(weights):
        for mode, matrices in enumerate(_mode_grams(stack)):
            grams[matrices.shape[-1]].append(matrices)
            places[matrices.shape[-1]] += [(member, mode) for member in members]
    spectra: dict[tuple[int, int], list[float]] = {}
    for size, group in grams.items():
        spectra.update(zip(places[size], root_eigenvalues(torch.cat(group)).tolist(), strict=True))
    return [
        tuple(_mode_condition(w, mode, spectra[i, mode if w.ndim > 2 else 0]) for mode in range(w.ndim))
        for i, w in enumerate(weights)
    ]


def headline(modes: Sequence[Condition]) -> Condition:
    """The mode that stands for the tensor: one that is not finite if there is any, else the largest kappa."""
    return max(modes, key=lambda mode: (math.isnan(mode.kappa), mode.kappa))


def _stacks(weights: Sequence[Tensor]) -> Iterator[tuple[list[int], Tensor]]:
    """Weights of one shape, dtype and device stacked, as many as make STACK elements (at least one)."""
    alike: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for index, weight in enumerate(weights):
        alike[weight.shape, weight.dtype, weight.device].append(index)
    for members in alike.values():
        count = max(1, STACK // weights[members[0]].numel())
        for start in range(0, len(members), count):
            chosen = members[start : start + count]
            yield chosen, torch.stack([weights[index] for index in chosen])


def _mode_grams(stack: Tensor) -> Iterator[Tensor]:
    """For a stack (weights, d_0, d_1, ...) and each mode k the Gram matrices (weights, s, s), s <= d_k."""
    yield small_grams(stack.flatten(2) if stack.ndim > 2 else stack[:, :, None])
    if stack.ndim < 4:
        return
    inner = stack.flatten(3).permute(0, 3, 1, 2).contiguous()  # (weights, trailing, d_0, d_1)
    yield small_grams(inner.flatten(1, 2).mT)
    sizes = stack.shape[3:]
    if len(sizes) == 1:
        yield small_grams(inner.flatten(2))
        return
    spatial = inner.flatten(2).double()
    joint = (spatial @ spatial.mT).reshape(-1, *sizes, *sizes)
    order = len(sizes)
    for mode in range(order):
        last = joint.movedim((1 + mode, 1 + order + mode), (-2, -1))  # (weights, others, others again, d_k, d_k)
        yield last.flatten(order, 2 * order - 2).flatten(1, order - 1).diagonal(0, 1, 2).sum(-1)


def _mode_condition(weight: Tensor, mode: int, sigma: list[float]) -> Condition:
    shape = (weight.shape[mode], weight.numel() // weight.shape[mode])
    values = sigma[-min(shape) :]
    if _gram_suffices(values[0], values[-1]):
        return condition(values, shape=shape, dtype=weight.dtype, method="gram64")
    return matrix_condition(weight.movedim(mode, 0).reshape(shape))


def _gram_suffices(low: float, top: float) -> bool:
    """Whether extreme sigmas from a Gram matrix can stand: kappa moderate, no square near under- or overflow."""
    return low * GRAM_LIMIT > top and 1e-140 < top < 1e140


def hidden_condition(
    hidden: Tensor,
    *,
    mode: Literal["batch", "channel"] = "batch",
    channel_dim: int = 1,
    reference: Tensor | None = None,
) -> Condition:
    """kappa of a batch of hidden representations (batch first, any further dimensions, any memory format).

    "batch": the n x N matrix with one flattened representation per column (Oyedotun et al., Definition 2), which is
    also the batch mode of the HOSVD; "channel": channels x everything else. The Gram matrix is taken on the short
    side in float64, piece by piece, so n may be millions. float64 data with kappa > 1e4 are done again by QR.

    `reference` is the same representation from a float64 (or re-ordered) forward pass: the difference then is the
    noise, and ||hidden - reference||_2 / sigma_max the tolerance, where it exceeds the rounding of the dtype alone.
    """
    hidden = _checked(hidden, real=True)
    if mode not in ("batch", "channel"):
        raise unknown("mode", mode, ["batch", "channel"])
    if hidden.ndim < 2 or not -hidden.ndim <= channel_dim < hidden.ndim:
        raise UsageError(f"expected (batch, ..., channels at {channel_dim}, ...); got shape {tuple(hidden.shape)}")
    dim = 0 if mode == "batch" else channel_dim % hidden.ndim
    shape = (hidden.shape[dim], hidden.numel() // hidden.shape[dim])
    parts = _unfolding(hidden, dim)
    sigma = root_eigenvalues(gram(parts)[None])[0]
    well = _gram_suffices(float(sigma[0]), float(sigma[-1]))
    exact = not well and hidden.dtype == torch.float64 and bool(torch.isfinite(hidden).all())
    tolerance = None
    if reference is not None:
        noise = root_eigenvalues(gram(_unfolding(hidden.double() - reference, dim))[None])[0, -1]
        tolerance = max(float(noise / sigma[-1]), rounding_tolerance(shape, hidden.dtype))
    lost, dead = (0, 0) if well and parts.shape[1] == shape[0] else structure(hidden.movedim(dim, 0).flatten(1))
    return condition(
        torch.linalg.svdvals(triangle(parts)) if exact else sigma,
        shape=shape,
        dtype=hidden.dtype,
        method="qr64" if exact else "gram64",
        tolerance=tolerance,
        structural=lost,
        dead=dead,
        note=f"{mode} mode",
    )


def _unfolding(x: Tensor, dim: int) -> Tensor:
    """`dim` against the rest as (parts, rows, columns), rows the shorter side; a view wherever the layout allows.

    The order of the columns does not change singular values, so they are taken as they lie in memory (channels_last).
    """
    strides = x.stride()
    rest = sorted((other for other in range(x.ndim) if other != dim), key=lambda other: -strides[other])
    rows = x.shape[dim]
    lying = x.permute(dim, *rest)
    if rows > x.numel() // rows:
        return lying.flatten(1).T[None]
    try:
        return lying.view(rows, -1)[None]
    except RuntimeError:
        return lying.movedim(1, 0).flatten(2)


def _checked(tensor: Tensor, *, real: bool = False) -> Tensor:
    if tensor.numel() == 0:
        raise UsageError(f"expected a tensor with elements; got shape {tuple(tensor.shape)}")
    if not (tensor.is_floating_point() or (tensor.is_complex() and not real)):
        raise UsageError(f"expected a {'real ' if real else ''}floating-point tensor; got {tensor.dtype}")
    if tensor.ndim == 0:
        raise UsageError("expected a tensor with at least one dimension; got a scalar")
    return tensor.detach()
