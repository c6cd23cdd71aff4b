"""The singular values of a convolution by frequency: on a torus, on any grid, and the most there can be.

On a torus (circular padding, stride dividing the map) the operator falls apart into one matrix P(u) per frequency
u of the n/s grid (Sedghi et al., Theorem 6; Zaeemzadeh et al., Theorem 3), P(-u) being the conjugate of P(u):
half of them say everything. P(u)^H P(u) = sum_s R_s exp(-2 pi i u.s / n) needs the autocorrelation R alone, so it costs
next to nothing, and its eigenvalues give sigma to eps sigma_max^2 / sigma; where that is no longer good enough
(kappa of one frequency above 3e3), the singular values of P(u) itself are taken. All of it in float64.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
import torch
from torch import Tensor

from leadline.core.errors import UsageError
from leadline.linalg.conditioning import Condition, condition
from leadline.linalg.correlation import correlation
from leadline.linalg.polyphase import Layout
from leadline.linalg.precision import widened

WELL_CONDITIONED = 1e-7  # sigma_min^2 / sigma_max^2 of one frequency above which its Gram matrix is exact to 1e-12
CHUNK = 2**17  # complex numbers held at a time: what the second-level cache holds
MOST_LAGS = 512  # of the autocorrelation: beyond (kernels of 13 x 13), its own transform costs more than it saves
GRID = 8  # points per degree and axis for the supremum of |P|: it is at most 1 / cos(pi / 8) per axis above the largest


@dataclass(frozen=True)
class Spectrum:
    """The singular values of a convolution on a torus, one row per frequency that is not another's conjugate."""

    values: Tensor  # (frequencies, groups * min(rows, columns)), float64
    multiplicity: Tensor  # (frequencies,)
    zeros: int  # further singular values that are zero because the stride skips pixels
    shape: tuple[int, int]  # of one P(u)
    dtype: torch.dtype  # of the kernel
    method: str

    @property
    def sigma(self) -> Tensor:
        """Every singular value as often as it occurs, largest first."""
        each = self.values.repeat_interleave(self.multiplicity, dim=0).flatten()
        return torch.cat([each, each.new_zeros(self.zeros)]).sort(descending=True).values

    @property
    def condition(self) -> Condition:
        """kappa over the singular values that the stride leaves, under the one policy for lost directions."""
        note = f"{self.zeros} more are zero: the stride skips pixels" if self.zeros else ""
        return condition(self.values, shape=self.shape, dtype=self.dtype, note=note)


def symbol_spectrum(kernel: Tensor, form: Layout, grid: tuple[int, ...], *, entries: int | None = None) -> Spectrum:
    """The singular values of P(u) on a torus whose outputs are a `grid`; `entries` is the number of inputs, if known.

    A (2q - 1)-grid determines P^H P everywhere (correlation.py): enough for a bound, for isometry, for a look.
    """
    taps = form.taps(widened(checked(kernel).detach()))
    scale = float(taps.abs().max()) or 1.0
    taps = (taps if taps.shape[-2] >= taps.shape[-1] else taps.mT) / scale
    frequencies, multiplicity = _half(grid, taps.device)
    if len(taps) == 1:
        frequencies, multiplicity = frequencies[:1], multiplicity.sum(0, keepdim=True)
        values = torch.linalg.svdvals(taps)
    else:
        values = _by_frequency(taps, form, 2 * torch.pi * frequencies / torch.tensor(grid, device=taps.device))
    values = scale * values.flatten(1)
    found = values.shape[1] * prod(grid)
    possible = found if entries is None else min(entries, form.shape[0] * prod(grid))
    method = "one matrix" if len(taps) == 1 else f"{len(frequencies)} of {prod(grid)} frequencies"
    return Spectrum(values, multiplicity, possible - found, form.matrix, kernel.dtype, f"{method}, float64")


def supremum(kernel: Tensor, form: Layout) -> float:
    """An upper bound of |P| over all frequencies: no map of any size and padding of zeros has a larger norm.

    A trigonometric polynomial of degree m is at most its maximum over N points divided by cos(pi m / N).
    """
    if prod(form.axes) == 1:
        return float(symbol_spectrum(kernel, form, (1,) * len(form.axes)).values.max())
    grid = tuple(GRID * (taps - 1) or 1 for taps in form.axes)
    slack = prod(math.cos(math.pi / GRID) for taps in form.axes if taps > 1)
    spaced = replace(form, spacing=(1,) * len(form.axes))
    return float(symbol_spectrum(kernel, spaced, grid).values.max()) / math.sqrt(slack)


def checked(kernel: Tensor) -> Tensor:
    """The kernel, if it is one that a spectrum can be asked of."""
    shape = tuple(kernel.shape)
    if not 3 <= kernel.ndim <= 5:
        raise UsageError(f"expected a kernel (d, c / groups, k_1 ... k_D) with D = 1, 2 or 3; got shape {shape}")
    if not kernel.dtype.is_floating_point:
        raise UsageError(f"expected a kernel of real floating-point numbers; got {kernel.dtype}")
    if kernel.device.type == "meta":
        raise UsageError("expected a kernel with numbers in it; got one on the meta device")
    if kernel.numel() == 0:
        raise UsageError(f"expected a kernel with entries; got shape {shape}")
    bad = int((~torch.isfinite(kernel)).sum())
    if bad:
        raise UsageError(f"expected finite numbers in a kernel {shape}; {bad} of {kernel.numel()} are NaN or infinite")
    return kernel


def _by_frequency(taps: Tensor, form: Layout, angles: Tensor) -> Tensor:
    """Descending singular values (frequencies, groups, columns) of P at `angles` (frequencies, D)."""
    if prod(2 * q - 1 for q in form.axes) > min(2 * len(angles), MOST_LAGS):
        pieces = torch.split(angles, max(8, CHUNK // taps[0].numel()))
        return torch.cat([_direct(taps, form, piece) for piece in pieces])
    table = correlation(form.axes, torch.float64, taps.device)
    lags = table.autocorrelation(table.values(taps))
    pieces = torch.split(angles, max(8, CHUNK // lags[0].numel()))
    return torch.cat([_gram_roots(taps, form, lags, piece) for piece in pieces])


def _gram_roots(taps: Tensor, form: Layout, lags: Tensor, angles: Tensor) -> Tensor:
    squares = _eigenvalues(_fourier(angles, lags, [range(1 - q, q) for q in form.axes], form.spacing))
    values = squares.clamp(min=0).sqrt().flip(-1)
    doubtful = (squares[..., 0] <= WELL_CONDITIONED * squares[..., -1]).any(-1)
    if doubtful.any():
        values[doubtful] = _direct(taps, form, angles[doubtful])
    return values


def _direct(taps: Tensor, form: Layout, angles: Tensor) -> Tensor:
    values: Tensor = torch.linalg.svdvals(_fourier(angles, taps, [range(q) for q in form.axes], form.spacing))
    return values


def _eigenvalues(hermitian: Tensor) -> Tensor:
    """Ascending. On a CPU by NumPy: its LAPACK takes three quarters of the time of torch's for many small matrices."""
    if hermitian.device.type == "cpu":
        return torch.from_numpy(np.linalg.eigvalsh(hermitian.numpy()))
    values: Tensor = torch.linalg.eigvalsh(hermitian)
    return values


def _fourier(angles: Tensor, stack: Tensor, places: Sequence[range], spacing: Sequence[int]) -> Tensor:
    """sum_t stack_t exp(-i angle.t) for every angle, t row-major over `places`: one real product for both parts."""
    axes = [torch.tensor(place, device=stack.device) * gap for place, gap in zip(places, spacing, strict=True)]
    offsets = torch.cartesian_prod(*axes).view(-1, len(axes)).double()
    phase = -(angles @ offsets.T)
    both = torch.cat([phase.cos(), phase.sin()]) @ stack.flatten(1)
    return torch.complex(*both.chunk(2)).view(-1, *stack.shape[1:])


def _half(grid: tuple[int, ...], device: torch.device) -> tuple[Tensor, Tensor]:
    """One of u and -u for every frequency u of the grid (frequencies, D), and how many it stands for."""
    all_of_them = torch.cartesian_prod(*(torch.arange(n, device=device) for n in grid)).view(-1, len(grid))
    sizes = torch.tensor(grid, device=device)
    strides = torch.tensor([prod(grid[axis + 1 :]) for axis in range(len(grid))], device=device)
    own, other = all_of_them @ strides, (-all_of_them % sizes) @ strides
    kept = own <= other
    return all_of_them[kept].double(), 1 + (own < other)[kept].long()
