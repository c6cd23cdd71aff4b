"""ResNEsts with their features held fixed: the problems (P_phi) and (PA_phi) of Chen et al., and how they are solved.

Samples are columns. y_hat = W_{L+1} (x_{L-1} + W_L v_L) in (P_phi), sum_i H_i v_i in (PA_phi).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from leadline.linalg.hessian import dense_hessian
from leadline.theorems._draw import Draw
from leadline.theorems._rounding import EPS, rounding

Loss = Callable[[Tensor, Tensor], Tensor]
Function = Callable[[Tensor], Tensor]

SIZES = (4, 3, 2)  # K_0 = N_in, K_1, ..., K_L: Assumption 4 asks M >= 7
SAMPLES = 40
OUTPUTS = 2
STARTS = 5
ARRIVED = 1e-9  # ||gradient|| over 1 + ||w||: what is left to gain is of second order in it
LARGEST = 1e8  # times the identity: no step is short enough to lower a risk that is at rounding


def squared(predicted: Tensor, y: Tensor) -> Tensor:
    """(1/2N) sum ||y_hat - y||^2, eq. (43)."""
    return (predicted - y).square().sum() / (2 * y.shape[1])


def cross_entropy(predicted: Tensor, y: Tensor) -> Tensor:
    """Against the distributions softmax(y): soft targets, so that the infimum is attained."""
    return -(y.softmax(0) * predicted.log_softmax(0)).sum() / y.shape[1]


LOSSES: dict[str, Loss] = {"squared": squared, "cross-entropy": cross_entropy}


@dataclass(frozen=True)
class Basis:
    """W_0, ..., W_{L-1}, features V_0, ..., V_L (K_i x N) and targets Y: a ResNEst for one choice of phi."""

    maps: tuple[Tensor, ...]
    features: tuple[Tensor, ...]
    y: Tensor

    @property
    def hidden(self) -> Tensor:
        """X_{L-1} = sum_{i < L} W_i V_i."""
        return torch.stack([w @ v for w, v in zip(self.maps, self.features, strict=False)]).sum(0)

    @property
    def stacked(self) -> Tensor:
        return torch.cat(self.features)

    @property
    def columns(self) -> Tensor:
        """[W_0 ... W_{L-1}], of full column rank under Assumption 4."""
        return torch.cat(self.maps, dim=1)

    @property
    def scale(self) -> float:
        """The risk of predicting zero."""
        return float(squared(0 * self.y, self.y))

    @property
    def tolerance(self) -> float:
        """Of a risk over `scale`: N roundings, and a fit of all features."""
        sigma = torch.linalg.svdvals(self.stacked)
        kept = sigma[sigma > EPS * len(sigma) * sigma[0]]
        return rounding(self.stacked.numel(), float(kept[0] / kept[-1]))

    def prefix(self, blocks: int) -> "Basis":
        """The same network cut after `blocks` blocks."""
        return Basis(self.maps[:blocks], self.features[: blocks + 1], self.y)

    def augmented_risk(self, heads: Tensor, loss: Loss = squared) -> Tensor:
        """A(H_0, ..., H_L) for H = [H_0 ... H_L]."""
        return loss(heads @ self.stacked, self.y)

    def risk(self, weights: Tensor, loss: Loss = squared) -> Tensor:
        """R(W_L, W_{L+1}) for both, flattened in this order."""
        w_l, w_out = self.split(weights)
        return loss(w_out @ (self.hidden + w_l @ self.features[-1]), self.y)

    def split(self, weights: Tensor) -> tuple[Tensor, Tensor]:
        m, k, outputs = len(self.maps[0]), len(self.features[-1]), len(self.y)
        return weights[: m * k].reshape(m, k), weights[m * k :].reshape(outputs, m)

    def heads(self, weights: Tensor) -> Tensor:
        """H_i = W_{L+1} W_i."""
        w_l, w_out = self.split(weights)
        return w_out @ torch.cat([self.columns, w_l], dim=1)


def resnest(draw: Draw, *, width: int, sizes: Sequence[int] = SIZES, outputs: int = OUTPUTS) -> Basis:
    """G_i(x) = tanh(B relu(A x)) and targets that no linear function of x explains; all weights at random.

    [W_0 ... W_{L-1}] has kappa = 10: those of square Gaussian matrices have no mean, and put minima out of reach.
    """
    columns = 2 * draw.matrix(width, sum(sizes[:-1]), kappa=10.0)
    maps = torch.split(columns, list(sizes[:-1]), dim=1)
    features, x = [draw.normal(sizes[0], SAMPLES)], torch.zeros(width, SAMPLES).double()
    for w, size in zip(maps, sizes[1:], strict=True):
        x = x + w @ features[-1]
        features.append(torch.tanh(draw.normal(size, 8) @ torch.relu(draw.normal(8, width) @ x) / 3))
    explained = draw.normal(outputs, sizes[0]) @ features[0] + torch.sin(
        2 * draw.normal(outputs, sizes[0]) @ features[0]
    )
    return Basis(tuple(maps), tuple(features), explained + 0.3 * draw.normal(outputs, SAMPLES))


def minimise(function: Function, start: Tensor, *, steps: int = 300) -> Tensor:
    """Newton's method on |Hessian| + mu I: goes down along negative curvature, and ends quadratically as mu goes down.

    It stops when the gradient is at rounding, or when neither the value nor the gradient gets smaller.
    """
    w, mu = start, 1.0
    lowest_value = lowest_slope = math.inf
    for _ in range(steps):
        leaf = w.detach().requires_grad_()
        value = function(leaf)
        g = torch.autograd.grad(value, leaf)[0]
        now, slope = float(value.detach()), float(g.norm())
        curvature, axes = torch.linalg.eigh(dense_hessian(function, w))
        steepest = float(curvature.abs().amax())
        if slope <= rounding(len(w), steepest * float(1 + w.norm())) or (now >= lowest_value and slope >= lowest_slope):
            break
        lowest_value, lowest_slope = min(now, lowest_value), min(slope, lowest_slope)
        mu, step = _lowering(function, (w, axes, curvature.abs(), axes.T @ g), now, max(mu / 8, 1e-10 * steepest))
        w = w - step
    return w


def _lowering(
    function: Function, at: tuple[Tensor, Tensor, Tensor, Tensor], value: float, mu: float
) -> tuple[float, Tensor]:
    """The first of mu, 4 mu, 16 mu, ... whose step lowers the value by a part of what it promises, and that step."""
    w, axes, curvature, along = at
    while True:
        step = axes @ (along / (curvature + mu))
        promised = float(along @ (along / (curvature + mu)))
        if float(function(w - step)) <= value * (1 + 4 * EPS) - promised / 100 or mu > LARGEST:
            return mu, step
        mu *= 4


def fitted(basis: Basis, loss: Loss, start: Tensor) -> Tensor:
    """Heads that minimise (PA_phi), by Newton's method."""
    flat = minimise(lambda h: basis.augmented_risk(h.reshape(start.shape), loss), start.flatten())
    return flat.reshape(start.shape)


def lowest(basis: Basis, loss: Loss = squared) -> float:
    """The minimum of (PA_phi); by least squares where it is one."""
    if loss is squared:
        heads = torch.linalg.lstsq(basis.stacked.T, basis.y.T, driver="gelsd").solution.T
    else:
        heads = fitted(basis, loss, torch.zeros(len(basis.y), len(basis.stacked)).double())
    return float(basis.augmented_risk(heads, loss))


def local_minimum(basis: Basis, draw: Draw, loss: Loss = squared) -> Tensor:
    """A local minimiser of (P_phi) from a random start, the first of a few that arrives; NaN if none does.

    A start that is still on its way says nothing about minima, whatever its risk; it is judged by its gradient alone.
    """
    m, k, outputs = len(basis.maps[0]), len(basis.features[-1]), len(basis.y)
    for _ in range(STARTS):
        w = minimise(lambda w: basis.risk(w, loss), draw.normal(m * k + outputs * m) / math.sqrt(m))
        if gradient_norm(lambda w: basis.risk(w, loss), w) <= ARRIVED * float(1 + w.norm()):
            return w
    return w * math.nan


def gradient_norm(function: Function, w: Tensor) -> float:
    leaf = w.detach().requires_grad_()
    return float(torch.autograd.grad(function(leaf), leaf)[0].norm())


def bases(draw: Draw) -> Iterator[tuple[str, Basis]]:
    """ResNEsts that meet Assumptions 3 and 4, with edges: one output, an output that is always zero, one block."""
    for width in (7, 10):
        yield f"M={width}, K=4,3,2", resnest(draw, width=width)
    yield "M=4, K=4,2", resnest(draw, width=4, sizes=(4, 2))
    yield "one output", resnest(draw, width=7, outputs=1)
    zero = resnest(draw, width=7)
    yield "an output that is zero", Basis(zero.maps, zero.features, torch.cat([zero.y[:1], 0 * zero.y[1:]]))
