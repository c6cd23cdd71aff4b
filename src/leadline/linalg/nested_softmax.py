"""Softmax heads on every prefix of a list of features at once, each with a certificate of how low its loss can be.

In whitened coordinates theta = U H (U^T U = V^T V / N) the prefixes stay nested and the curvature is at most 1/2, so
L-BFGS converges in tens of passes where raw features take hundreds. Every pass over the data serves all prefixes that
are not done: a block of features meets the heads of all of them in one matrix product. The data are never whitened;
two triangular solves per pass turn theta into a head and its gradient back.

    f(theta) = (1/N) sum cross-entropy + (ridge/2) |theta|^2,   min f >= f(theta) - |grad f(theta)|^2 / (2 ridge),

because f is ridge-strongly convex: a fit that stopped early is an upper bound, this is a lower one.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from leadline.core.errors import UsageError
from leadline.linalg import memory
from leadline.linalg.nested_fit import (
    Batch,
    FeatureGram,
    NestedFactor,
    factorise,
    inside,
    spread,
    stack,
    unwhiten,
    whiten_slope,
)

HISTORY = 10
SHARP_ENOUGH = 1e-3  # features conditioned worse than this are swept in float64
FINE = 1e-5  # as are gradients asked for below this


@dataclass(frozen=True, kw_only=True)
class SoftmaxFits:
    """Per prefix, at the head that was reached, evaluated in float64 at the end.

    `risk`: mean cross-entropy; `objective` = risk + (ridge/2) |theta|^2; `lower_bound` on the least objective.
    `separable`: this head puts every sample on its right side, so the least risk without ridge is 0 and not attained.
    """

    risk: tuple[float, ...]
    objective: tuple[float, ...]
    lower_bound: tuple[float, ...]
    gradient_norm: tuple[float, ...]
    converged: tuple[bool, ...]
    separable: tuple[bool, ...]
    passes: int
    heads: Tensor
    ranks: tuple[int, ...]
    ridge: float
    tolerance: float
    count: int
    dtype: str

    def risk_bound(self, prefix: int, logit_square: float) -> float:
        """No head on this prefix whose logits have mean |logits|^2 = `logit_square` has a lower risk than this.

        |theta|^2 is the mean square of the logits, so risk >= lower_bound - (ridge/2) logit_square.
        """
        return self.lower_bound[prefix] - self.ridge / 2 * logit_square


def softmax_prefixes(
    batches: Callable[[], Iterable[Batch]],
    moments: FeatureGram,
    *,
    ridge: float = 1e-4,
    tolerance: float = 2e-4,
    passes: int = 200,
) -> SoftmaxFits:
    """Heads for integer labels; `batches()` starts a new sweep over the data that gave `moments`.

    Stops when every gradient is below `tolerance` (the certificate then is tolerance^2 / (2 ridge) wide) or after
    about `passes`. Sweeps are in float32 for float32 features that are not badly conditioned, else in float64.
    """
    if ridge <= 0:
        raise UsageError(f"expected a ridge above 0, the certificate divides by it; got {ridge}")
    factor = factorise(moments)
    exact = moments.dtype != "float32" or factor.sharpness < SHARP_ENOUGH or tolerance < FINE
    sweep = _Sweep(batches, moments, factor, torch.float64 if exact else torch.float32)
    theta = _minimise(sweep, ridge=ridge, tolerance=tolerance, passes=passes)
    risk, slope, margin = sweep(theta, list(range(len(factor.ranks))), torch.float64)
    norms = (slope + ridge * theta).square().sum((0, 2)).sqrt()
    objective = risk + ridge / 2 * theta.square().sum((0, 2))
    return SoftmaxFits(
        risk=tuple(risk.tolist()),
        objective=tuple(objective.tolist()),
        lower_bound=tuple((objective - norms**2 / (2 * ridge)).tolist()),
        gradient_norm=tuple(norms.tolist()),
        converged=tuple((norms <= tolerance).tolist()),
        separable=tuple((margin > 0).tolist()),
        passes=sweep.count,
        heads=spread(factor, unwhiten(factor, theta), len(moments.gram)),
        ranks=factor.ranks,
        ridge=ridge,
        tolerance=tolerance,
        count=moments.count,
        dtype=moments.dtype,
    )


class _Sweep:
    """theta (directions, active prefixes, classes) -> cross-entropy, gradient, least margin of every prefix."""

    def __init__(
        self, batches: Callable[[], Iterable[Batch]], moments: FeatureGram, factor: NestedFactor, dtype: torch.dtype
    ) -> None:
        self.batches, self.moments, self.factor = batches, moments, factor
        self.inside = inside(factor)
        self.classes = moments.cross.shape[1]
        self.dtype, self.count = dtype, 0

    def __call__(self, theta: Tensor, active: list[int], dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
        self.count += 1
        heads = unwhiten(self.factor, theta).flatten(1).to(dtype)
        slope = torch.zeros_like(theta).flatten(1)
        risk, margin = theta.new_zeros(len(active)), theta.new_full((len(active),), torch.inf)
        blocks, samples = self._blocks(active), 0
        for features, labels in self.batches():
            columns = stack(features, bias=self.moments.bias).to(dtype)
            if columns.shape[1] > len(self.factor.kept):
                columns = columns[:, self.factor.kept]
            logits = columns.new_zeros(len(columns), heads.shape[1])
            for start, stop, first in blocks:
                logits[:, first:].addmm_(columns[:, start:stop], heads[start:stop, first:])
            residual, loss, least = _entropy(logits.view(len(columns), len(active), self.classes), labels)
            for start, stop, first in blocks:
                slope[start:stop, first:] += columns[:, start:stop].T @ residual[:, first:]
            risk, margin, samples = risk + loss, torch.minimum(margin, least), samples + len(columns)
        if samples != self.moments.count:
            raise UsageError(f"expected {self.moments.count} samples in every sweep, as in the Gram; got {samples}")
        slope = whiten_slope(self.factor, slope.view(theta.shape) / samples)
        return risk / samples, slope * self.inside[:, active], margin

    def _blocks(self, active: list[int]) -> list[tuple[int, int, int]]:
        """(first and last column of a block, first column of the logits it acts on), where there is any."""
        spans = enumerate(pairwise((0, *self.factor.ranks)))
        found = [(start, stop, sum(prefix < block for prefix in active)) for block, (start, stop) in spans]
        return [(start, stop, self.classes * f) for start, stop, f in found if start < stop and f < len(active)]


def _entropy(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(p - y, summed cross-entropy, least p_label - max p_other) for logits (n, prefixes, classes)."""
    if labels.is_floating_point() or labels.shape != logits.shape[:1]:
        raise UsageError(
            f"expected integer labels {tuple(logits.shape[:1])}; got {tuple(labels.shape)}, {labels.dtype}"
        )
    index = labels.to(logits.device).long()[:, None, None].expand(-1, logits.shape[1], 1)
    logs = torch.log_softmax(logits, 2)
    loss = -logs.gather(2, index).sum((0, 2), dtype=torch.float64)
    residual = logs.exp_().scatter_add_(2, index, logits.new_full((), -1.0).expand(index.shape))
    margin = 1 + residual.gather(2, index)[:, :, 0] - residual.amax(2)
    return residual.flatten(1), loss, margin.amin(0).double()


def _minimise(sweep: _Sweep, *, ridge: float, tolerance: float, passes: int) -> Tensor:
    """L-BFGS on all prefixes side by side, each with its own step; those that are done leave the sweep."""
    size, prefixes, _ = sweep.inside.shape
    memory.require(
        8 * (2 * HISTORY + 8) * size * prefixes * sweep.classes,
        f"softmax heads of {sweep.classes:,} classes on {prefixes} prefixes of {size:,} features",
        instead="fit fewer prefixes or pool the features",
        device=sweep.inside.device,
    )
    theta = torch.zeros(size, prefixes, sweep.classes, dtype=torch.float64, device=sweep.inside.device)
    active = list(range(prefixes))

    def evaluate(x: Tensor, places: list[int]) -> tuple[Tensor, Tensor]:
        risk, slope, _ = sweep(x, [active[place] for place in places], sweep.dtype)
        return risk + ridge / 2 * _dot(x, x), slope + ridge * x

    x = theta.clone()
    value, slope = evaluate(x, active)
    moved = torch.ones_like(value, dtype=torch.bool)
    history: list[tuple[Tensor, Tensor]] = []
    while True:
        theta[:, active] = x
        going = (moved & (_dot(slope, slope) > tolerance**2)).nonzero()[:, 0]
        active = [active[place] for place in going.tolist()]
        if not active or sweep.count >= passes:
            return theta
        x, value, slope = x[:, going], value[going], slope[:, going]
        history = [(step[:, going], turn[:, going]) for step, turn in history[-HISTORY:]]
        new_x, new_value, new_slope, moved = _advance(evaluate, x, value, slope, _direction(slope, history, ridge))
        history.append((new_x - x, new_slope - slope))
        x, value, slope = new_x, new_value, new_slope


def _advance(
    evaluate: Callable[[Tensor, list[int]], tuple[Tensor, Tensor]],
    x: Tensor,
    value: Tensor,
    slope: Tensor,
    way: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """A step along `way` for every prefix, halved until it goes down as far as the slope promises (Armijo)."""
    promised, length = _dot(slope, way), torch.ones_like(value)
    slack = 1e-9 * value.abs()  # what float32 sweeps leave in a mean over the samples
    new_x, new_value, new_slope = x.clone(), value.clone(), slope.clone()
    pending = torch.arange(len(value), device=value.device)
    for _ in range(10):
        trial = x[:, pending] + length[pending, None] * way[:, pending]
        reached, turned = evaluate(trial, pending.tolist())
        good = reached <= (value + 1e-4 * length * promised + slack)[pending]
        done, pending = pending[good], pending[~good]
        new_x[:, done], new_value[done], new_slope[:, done] = trial[:, good], reached[good], turned[:, good]
        length[pending] /= 2
        if not len(pending):
            break
    moved = torch.ones_like(value, dtype=torch.bool)
    moved[pending] = False
    return new_x, new_value, new_slope, moved


def _direction(slope: Tensor, history: list[tuple[Tensor, Tensor]], ridge: float) -> Tensor:
    """-H^-1 slope by the two-loop recursion; without history one over the largest curvature, 1/2 + ridge."""
    way, weights = -slope, []
    for step, turn in reversed(history):
        weight = _dot(step, way) / _dot(step, turn)
        weights.append(weight)
        way = way - weight[:, None] * turn
    if history:
        step, turn = history[-1]
        way = way * (_dot(step, turn) / _dot(turn, turn))[:, None]
    else:
        way = way / (0.5 + ridge)
    for (step, turn), weight in zip(history, reversed(weights), strict=True):
        way = way + (weight - _dot(turn, way) / _dot(step, turn))[:, None] * step
    return way


def _dot(left: Tensor, right: Tensor) -> Tensor:
    """The inner product of every prefix."""
    return (left * right).sum((0, 2))
