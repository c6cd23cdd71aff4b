"""Eigenvalues of the Hessian of the loss: ends, condition, share of negative ones, density; of all weights or a block.

    H = d^2 E / dw^2,    ratio10 = |lambda|_max / |lambda|_(0.1),    index = share of lambda < 0

Readings: `top` and `bottom` (lambda_max, lambda_min), `largest` = |lambda|_max, `percentile10` = |lambda|_(0.1), the
10th percentile of the absolute values, `ratio10` (which stands for the condition number, as the smallest one is very
unstable), `index`, `trace`, and the density as `histogram/00` ... `histogram/15`, the share of the eigenvalues in each
of 16 equal parts of [lambda_min, lambda_max]. `kappa` = |lambda|_max / |lambda|_min only where all are computed.

Reference: Li, Jiao, Han, Weissman, section 5.1, Figs 4 (initial condition numbers against depth), 5 (maxima and 10th
percentiles), 6 (index); Theorem 2 for what they are at zero.
Up to `dense` parameters the whole matrix is computed. Above, Lanczos gives the ends within stated errors, stochastic
Lanczos quadrature the density and trace with their standard errors. Quadrature resolves the ends first: an eigenvalue
is within the residual of its node, so what lies near zero is bounded and not told: `percentile10` from above, `ratio10`
from below, the index between `index/low` and `index/high`.
Normal: in linear networks whose skips span two layers `ratio10` is below 10 at any depth, without skips it grows by
decades with depth (Li et al., Fig. 4). `index` 0.2 to 0.5 at initialisation, near 0 where training ends (their Fig.
6). Large networks have most of their eigenvalues at zero: `ratio10` of 1e3 and more is usual there, and only its trend
says something.
Cost: at most (probes + 1) steps products of two and a half gradients each on `samples` samples: about 200 training
steps at batch 128. Memory: steps + 4 vectors of all weights and the graph of one gradient, about three times that of a
training step; refused where that is not free.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from leadline.core.errors import LeadlineError, UsageError, unknown
from leadline.core.when import LogSpaced, When
from leadline.linalg import hessian, lanczos
from leadline.linalg.hessian import CurvatureOperator, Spectrum
from leadline.linalg.lanczos import Density, Estimate
from leadline.probes import Axis, Moment, Reading
from leadline.probes._passes import batch_size, failure, in_a_line, mode, own_pass, require_graph, samples
from leadline.probes._readings import Found, Noted, kappa, missing, scalar
from leadline.taps.tape import Tap

if TYPE_CHECKING:
    from leadline.taps.anatomy import Anatomy

BINS = 16
GRAPHS = 3
"""The graph of a gradient holds about this many times what the graph of the loss does."""


@dataclass(frozen=True, kw_only=True)
class HessianSpectrum:
    """`block` is the name of a block or module whose weights alone are varied; all trained ones when it is empty."""

    when: When = LogSpaced(1)
    block: str = ""
    samples: int = 128
    dense: int = 2048
    steps: int = 30
    probes: int = 2
    seed: int = 0
    axis: ClassVar[Axis] = "block"

    def taps(self, anatomy: "Anatomy") -> Sequence[Tap]:  # noqa: ARG002
        return ()

    def read(self, at: Moment) -> Iterator[Reading]:
        try:
            yield from self._spectrum(at)
        except LeadlineError as error:
            yield missing("top", str(error))
        except Exception as error:  # what an operation, or a checkpoint around it, has against a second derivative
            yield missing("top", f"no second derivatives: {in_a_line(error)}")

    def _spectrum(self, at: Moment) -> list[Reading]:
        params = self._weights(at)
        inputs, ways = samples(at.inputs, self.samples), mode(at.model)
        require_graph(at, inputs, times=GRAPHS)
        # the fused attention kernels have no second derivative
        with own_pass(at.model, gradients=True), sdpa_kernel(SDPBackend.MATH):
            try:
                if at.loss_fn is None:
                    raise UsageError("there is no loss function to differentiate")
                loss = at.loss_fn(inputs.call(at.model), inputs.targets)
            except LeadlineError:
                raise
            except Exception as error:
                raise UsageError(failure(error)) from None
            operator = hessian.hessian_operator(loss, params, mode=ways)
            kind = str(operator.dtype).removeprefix("torch.")
            remark = f"{operator.size:,} weights, {batch_size(inputs)} samples, {ways} mode, {kind}"
            return self._dense(operator, remark) if operator.size <= self.dense else self._sampled(operator, remark)

    def _weights(self, at: Moment) -> list[nn.Parameter]:
        modules = dict(at.model.named_modules())
        named = {block.name: block.modules for block in at.anatomy.blocks} | {name: (name,) for name in modules}
        if self.block not in named:
            raise unknown("block", self.block, named)
        inside = (parameter for name in named[self.block] for parameter in modules[name].parameters())
        params = [parameter for parameter in dict.fromkeys(inside) if parameter.requires_grad]
        half = {str(parameter.dtype) for parameter in params if parameter.dtype.itemsize < 4}
        if not params:
            raise UsageError(f"{self.block or 'the model'} has no trained parameters")
        if half:
            raise UsageError(f"a Hessian needs single or double precision; the weights are {', '.join(half)}")
        return params

    def _dense(self, operator: CurvatureOperator, remark: str) -> list[Reading]:
        found = hessian.spectrum(_matrix(operator), mode=operator.mode)
        remark = f"all eigenvalues of {remark}"
        values, tenth = found.eigenvalues.double(), found.percentile10
        lost = f"the 10th percentile is not told from zero, which means {found.tolerance:.1e} |lambda|_max"
        numbers: dict[str, Found] = {
            "top": float(values[-1]),
            "bottom": float(values[0]),
            "largest": found.largest,
            "percentile10": tenth,
            "ratio10": Noted(1 / found.tolerance, f"a lower bound: {lost}") if _is_lost(found) else found.ratio10,
            "index": found.index,
            "trace": float(values.sum()),
            "kappa": kappa(found.condition),
        }
        weights = torch.full_like(values, 1 / len(values))[None]
        whole = Density(nodes=values[None], weights=weights, size=len(values), dtype="", mode="")
        shares = {name: share for name, (share, _) in _shares(whole, values[0], values[-1]).items()}
        return [_reading(name, found_, found.note, remark) for name, found_ in (numbers | shares).items()]

    def _sampled(self, operator: CurvatureOperator, remark: str) -> list[Reading]:
        ends = lanczos.extremes(operator, steps=self.steps, seed=self.seed)
        nodes, weights, residuals = self._quadrature(operator)
        density = Density(nodes=nodes, weights=weights, size=operator.size, dtype=ends.dtype, mode=ends.mode)
        bottom, top, sizes = ends.lowest[0], ends.highest[0], nodes.abs()
        least, most = (quantile(bound, weights, 0.1) for bound in ((sizes - residuals).clamp(min=0), sizes + residuals))
        negative, unsure = (
            float((weights * which).sum(1).mean()) for which in (nodes < -residuals, sizes <= residuals)
        )
        numbers: dict[str, Found] = {
            "top": _estimate(top, ends.highest_error[0]),
            "bottom": _estimate(bottom, ends.lowest_error[0]),
            "largest": _estimate(ends.magnitude, max(ends.highest_error[0], ends.lowest_error[0])),
            "percentile10": Noted(most, f"an upper bound; at least {least:.3g}"),
            "ratio10": Noted(ends.magnitude / most, "a lower bound") if most else "the Hessian is zero",
            "index/low": negative,
            "index/high": negative + unsure,
            "trace": _estimate(*density.trace),
        }
        shares = {name: _estimate(*share) for name, share in _shares(density, bottom, top).items()}
        remark = f"{ends.products} and {self.probes} x {self.steps} Lanczos products, {remark}"
        return [_reading(name, found, remark) for name, found in (numbers | shares).items()]

    def _quadrature(self, operator: CurvatureOperator) -> tuple[Tensor, Tensor, Tensor]:
        """Nodes, weights and residuals (probes, steps) of Lanczos from random vectors; unused places weigh nothing."""
        generator = torch.Generator().manual_seed(self.seed)
        found = torch.zeros(3, self.probes, min(self.steps, operator.size), dtype=torch.float64)
        for probe in range(self.probes):
            ritz = lanczos.lanczos(operator, steps=self.steps, generator=generator, renew=False).ritz()
            for kind, values in enumerate(ritz):
                found[kind, probe, : len(values)] = values
        return found[0], found[1], found[2]


def _is_lost(found: Spectrum) -> bool:
    return found.largest > 0 and found.percentile10 <= found.tolerance * found.largest


def _estimate(value: float, error: float) -> Noted:
    return Noted(value, f"+-{error:.1e}")


def _reading(name: str, found: Found, *remarks: str) -> Reading:
    """A scalar with its own note before the remarks that go for all of them."""
    value, note = (math.nan, found) if isinstance(found, str) else found if isinstance(found, Noted) else (found, "")
    return scalar(name, Noted(value, "; ".join(filter(None, (note, *remarks)))))


def quantile(values: Tensor, weights: Tensor, share: float) -> float:
    """The smallest value below or at which at least `share` of the weight lies."""
    order = torch.argsort(values.flatten())
    mass = weights.flatten()[order].cumsum(0)
    return float(values.flatten()[order][int(torch.searchsorted(mass, share * mass[-1]))])


def _shares(density: Density, low: float | Tensor, high: float | Tensor) -> dict[str, Estimate]:
    """How much of the spectrum lies in each of BINS equal parts of [low, high]."""
    width = max(float(high - low), math.ulp(0.0))

    def part(number: int) -> Callable[[Tensor], Tensor]:
        return lambda nodes: (((nodes - low) / width * BINS).floor().clamp(0, BINS - 1) == number).double()

    return {f"histogram/{number:02}": density.mean(part(number)) for number in range(BINS)}


def _matrix(operator: CurvatureOperator) -> Tensor:
    """The dense Hessian; column by column where an operation in the model cannot be batched."""
    try:
        return hessian.dense(operator)
    except RuntimeError:
        rows = [operator(unit) for unit in torch.eye(operator.size, dtype=operator.dtype, device=operator.device)]
        matrix = torch.stack(rows)
        return (matrix + matrix.T) / 2
