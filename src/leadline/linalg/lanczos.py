"""Extreme eigenvalues with residual bounds and the spectral density of a symmetric operator known by its products.

k steps of Lanczos give A Q = Q T + beta_k q_{k+1} e_k^T with T tridiagonal. An eigenpair (theta, s) of T is within
|beta_k s_k| of an eigenvalue of A; every new q is made orthogonal to all former ones, twice, so no copies appear.
One starting vector meets one direction of a multiple eigenvalue: values are found, multiplicities are not. When the
space is exhausted early the recursion goes on from a fresh random direction.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from leadline.core.errors import UsageError
from leadline.linalg import memory


class Symmetric(Protocol):
    """A symmetric matrix known by its products; `mode` says under which batch-norm mode (see hessian.py)."""

    @property
    def size(self) -> int: ...
    @property
    def dtype(self) -> torch.dtype: ...
    @property
    def device(self) -> torch.device: ...
    @property
    def mode(self) -> str: ...
    def __call__(self, vector: Tensor, /) -> Tensor: ...


@dataclass(frozen=True)
class Krylov:
    """Orthonormal rows q_1 ... q_k; the diagonal alpha of T, and beta beside it, whose last leads out of the space."""

    basis: Tensor
    alpha: Tensor
    beta: Tensor

    def ritz(self) -> tuple[Tensor, Tensor, Tensor]:
        """Ascending eigenvalues of T, the squared first components of its eigenvectors, the residuals |beta_k s_k|."""
        off = self.beta[:-1]
        values, vectors = torch.linalg.eigh(self.alpha.diag() + off.diag(1) + off.diag(-1))
        return values, vectors[0] ** 2, (self.beta[-1] * vectors[-1]).abs()


def lanczos(
    operator: Symmetric,
    *,
    steps: int,
    generator: torch.Generator,
    renew: bool = True,
    enough: Callable[[Krylov], bool] = lambda _: False,
) -> Krylov:
    """Up to `steps` steps from a random start, fewer once `enough`, which is asked after every fifth, says so.

    With `renew` an exhausted space is left by a fresh random direction (for eigenvalues); without it the recursion
    ends there (for quadrature, where the weights then are complete).
    """
    size, steps = operator.size, min(steps, operator.size)
    eps = torch.finfo(operator.dtype).eps
    memory.require(
        (steps + 4) * size * torch.empty(0, dtype=operator.dtype).element_size(),
        f"Lanczos with {steps} vectors of {size:,} entries",
        instead="take fewer steps or a block of the parameters",
        device=operator.device,
    )
    basis = torch.zeros(steps, size, dtype=operator.dtype, device=operator.device)
    alpha, beta = torch.zeros(2, steps, dtype=torch.float64)
    q, scale = _unit(_random(basis[0], generator), basis[:0])[0], 0.0
    for step in range(steps):
        done = step + 1
        basis[step] = q
        image = operator(q)
        scale = max(scale, float(torch.linalg.vector_norm(image)))
        alpha[step] = torch.dot(q, image).double()
        q, length = _unit(image, basis[:done])
        if not math.isfinite(length):
            raise UsageError(f"the operator gives numbers that are not finite (product {done} of at most {steps})")
        if length > 10 * eps * scale:
            beta[step] = length
        elif renew and done < steps:
            q, _ = _unit(_random(q, generator), basis[:done])
        else:
            break
        if done % 5 == 0 and enough(Krylov(basis[:done], alpha[:done], beta[:done])):
            break
    return Krylov(basis[:done], alpha[:done], beta[:done])


def _unit(vector: Tensor, basis: Tensor) -> tuple[Tensor, float]:
    """The part of `vector` orthogonal to the rows of `basis`, normalised, and its length."""
    for _ in range(2):
        vector = vector - basis.T @ (basis @ vector)
    length = float(torch.linalg.vector_norm(vector))
    return vector / length if length else vector, length


def _random(like: Tensor, generator: torch.Generator) -> Tensor:
    return torch.randn(like.shape, generator=generator, dtype=torch.float64).to(like)


@dataclass(frozen=True, kw_only=True)
class Extremes:
    """Eigenvalues at both ends, outermost first, each within its error of a true one.

    error = |beta_k s_k| + eps(dtype) |lambda|_max: the Lanczos residual and the rounding of the products.
    """

    lowest: tuple[float, ...]
    lowest_error: tuple[float, ...]
    highest: tuple[float, ...]
    highest_error: tuple[float, ...]
    converged: bool
    products: int
    size: int
    dtype: str
    mode: str
    note: str

    @property
    def magnitude(self) -> float:
        """|lambda|_max."""
        return max(abs(self.lowest[0]), abs(self.highest[0]))


def extremes(
    operator: Symmetric, *, count: int = 1, steps: int = 100, tolerance: float = 1e-3, seed: int = 0
) -> Extremes:
    """The `count` lowest and highest eigenvalues to `tolerance` |lambda|_max, or as well as `steps` products can."""
    if not 1 <= count <= operator.size:
        raise UsageError(f"expected 1 to {operator.size:,} eigenvalues at each end; got {count}")

    def open_ends(found: Krylov) -> float:
        values, _, residuals = found.ritz()
        ends = torch.cat([residuals[:count], residuals[-count:]])
        return float(ends.max() / values.abs().max().clamp(min=torch.finfo(torch.float64).tiny))

    found = lanczos(
        operator,
        steps=steps,
        generator=torch.Generator().manual_seed(seed),
        enough=lambda found: len(found.alpha) >= 2 * count and open_ends(found) <= tolerance,
    )
    values, _, residuals = found.ritz()
    errors = residuals + torch.finfo(operator.dtype).eps * values.abs().max()
    converged = len(values) >= min(count, operator.size) and open_ends(found) <= tolerance
    return Extremes(
        lowest=tuple(values[:count].tolist()),
        lowest_error=tuple(errors[:count].tolist()),
        highest=tuple(values.flip(0)[:count].tolist()),
        highest_error=tuple(errors.flip(0)[:count].tolist()),
        converged=converged,
        products=len(values),
        size=operator.size,
        dtype=str(operator.dtype).removeprefix("torch."),
        mode=operator.mode,
        note="multiplicities are not seen" if converged else f"not converged in {len(values)} products",
    )


class Estimate(NamedTuple):
    """A value and its standard error over the probes (NaN with a single probe)."""

    value: float
    error: float


@dataclass(frozen=True, kw_only=True)
class Density:
    """Stochastic Lanczos quadrature: (1/size) sum_i f(lambda_i) = mean over probes of sum_j weights_j f(nodes_j).

    Exact for polynomials up to degree 2 k - 1 per probe; the error bars are those of the sampling over probes. Nodes
    resolve the ends of the spectrum first: a percentile deep inside a narrow bulk is as sharp as the nodes there.
    """

    nodes: Tensor  # (probes, k), unused places have weight 0
    weights: Tensor
    size: int
    dtype: str
    mode: str

    def mean(self, function: Callable[[Tensor], Tensor]) -> Estimate:
        """(1/size) sum_i f(lambda_i)."""
        return _over_probes((self.weights * function(self.nodes)).sum(1))

    @property
    def trace(self) -> Estimate:
        value, error = self.mean(lambda nodes: nodes)
        return Estimate(self.size * value, self.size * error)

    def index(self, *, zero: float = 1e-6) -> Estimate:
        """The share of eigenvalues below -zero |lambda|_max."""
        return self.mean(lambda nodes: (nodes < -zero * self.largest).double())

    @property
    def largest(self) -> float:
        """|lambda|_max as met by the probes: a lower bound, sharp for an isolated end."""
        return float((self.nodes * (self.weights > 0)).abs().max())

    def percentile(self, share: float = 0.1) -> Estimate:
        """|lambda|_(share), the quantile of the absolute values, with its jackknife error."""
        return self._jackknife(lambda nodes, weights: _quantile(nodes.abs(), weights, share))

    def ratio10(self) -> Estimate:
        """|lambda|_max / |lambda|_(0.1), what Li et al. plot for the condition number of the Hessian."""
        return self._jackknife(lambda nodes, weights: self.largest / _quantile(nodes.abs(), weights, 0.1))

    def curve(self, grid: Tensor, *, width: float) -> tuple[Tensor, Tensor]:
        """The density on `grid`, smoothed by a Gaussian of standard deviation `width`, and its standard error."""
        steps = (grid[:, None, None] - self.nodes) / width  # (grid, probes, k)
        each = (self.weights * torch.exp(-(steps**2) / 2)).sum(2) / (width * math.sqrt(2 * math.pi))
        probes = each.shape[1]
        return each.mean(1), each.std(1) / math.sqrt(probes) if probes > 1 else torch.full_like(grid, math.nan)

    def _jackknife(self, statistic: Callable[[Tensor, Tensor], float]) -> Estimate:
        probes = len(self.nodes)
        left_out = [torch.arange(probes) != probe for probe in range(probes)] if probes > 1 else []
        each = torch.tensor([statistic(self.nodes[keep], self.weights[keep]) for keep in left_out])
        error = float((each - each.mean()).norm()) * math.sqrt((probes - 1) / probes) if left_out else math.nan
        return Estimate(statistic(self.nodes, self.weights), error)


def density(operator: Symmetric, *, probes: int = 10, steps: int = 60, seed: int = 0) -> Density:
    """The spectral density of `operator` from `probes` random vectors with `steps` products each."""
    if probes < 1 or steps < 1:
        raise UsageError(f"expected at least one probe and one step; got {probes} and {steps}")
    generator = torch.Generator().manual_seed(seed)
    nodes, weights = torch.zeros(2, probes, min(steps, operator.size), dtype=torch.float64)
    for probe in range(probes):
        values, shares, _ = lanczos(operator, steps=steps, generator=generator, renew=False).ritz()
        nodes[probe, : len(values)] = values
        weights[probe, : len(values)] = shares
    name = str(operator.dtype).removeprefix("torch.")
    return Density(nodes=nodes, weights=weights, size=operator.size, dtype=name, mode=operator.mode)


def _over_probes(each: Tensor) -> Estimate:
    error = float(each.std()) / math.sqrt(len(each)) if len(each) > 1 else math.nan
    return Estimate(float(each.mean()), error)


def _quantile(values: Tensor, weights: Tensor, share: float) -> float:
    """The smallest value below which at least `share` of the weight lies."""
    order = torch.argsort(values.flatten())
    mass = weights.flatten()[order].cumsum(0)
    return float(values.flatten()[order][int(torch.searchsorted(mass, share * mass[-1]))])
