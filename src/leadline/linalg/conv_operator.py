"""A convolution as a linear operator: products for the real padding, singular values, norm and kappa with their errors.

On a torus (circular padding, stride dividing the map) the operator falls apart into one matrix P(u) per frequency
u of the n/s grid (Sedghi et al., Theorem 6; Zaeemzadeh et al., Theorem 3), P(-u) being the conjugate of P(u):
half of them say everything. P(u)^H P(u) = sum_s R_s exp(2 pi i u.s / n) needs the autocorrelation R alone, so it costs
next to nothing, and its eigenvalues give sigma to eps sigma_max^2 / sigma; where that is no longer good enough
(kappa of one frequency above 3e3), the singular values of P(u) itself are taken. All of it in float64.

Zero padding cuts a finite piece out of the operator on the infinite plane, so sup |P| bounds its norm from above;
Lanczos bounds it from below and says how closely. Its smallest singular value has no such handle: only bounds.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from leadline.core.errors import UsageError, unknown
from leadline.linalg.conditioning import Condition, condition
from leadline.linalg.correlation import correlation
from leadline.linalg.lanczos import lanczos
from leadline.linalg.polyphase import Layout, layout

WELL_CONDITIONED = 1e-7  # sigma_min^2 / sigma_max^2 of one frequency above which its Gram matrix is exact to 1e-12
EXACT = 1e-12  # error of a singular value over sigma_max
CHUNK = 2**17  # complex numbers held at a time: what the second-level cache holds
GRID = 8  # points per degree and axis for the supremum of |P|: it is at most 1 / cos(pi / 8) per axis above the largest

_CONVOLVE = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
_TRANSPOSE = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """low <= quantity <= high, and how that was found; `value` is the best estimate, None where there is none."""

    low: float
    high: float
    value: float | None
    method: str

    def __str__(self) -> str:
        if self.value is not None:
            return f"{self.value:.6g} ({self.method})"
        return f"{self.low:.3g} .. {self.high:.3g}, a bound only ({self.method})"


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


@dataclass(frozen=True, kw_only=True)
class ConvOperator:
    """x (batch, c, n_1 ... n_D) -> y (batch, d, m_1 ... m_D) without bias; build it with `conv_operator` or `of`."""

    kernel: Tensor  # (d, c / groups, k_1 ... k_D)
    size: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int
    padding: tuple[tuple[int, int], ...]  # per axis, before and after
    circular: bool

    @property
    def domain(self) -> tuple[int, ...]:
        return self.kernel.shape[1] * self.groups, *self.size

    @property
    def image(self) -> tuple[int, ...]:
        """The shape of y, without the batch."""
        lengths = zip(self._padded, self._extent, self.stride, strict=True)
        return self.kernel.shape[0], *((n - extent) // s + 1 for n, extent, s in lengths)

    @property
    def layout(self) -> Layout:
        return layout(tuple(self.kernel.shape), stride=self.stride, dilation=self.dilation, groups=self.groups)

    @property
    def is_one_matrix(self) -> bool:
        """Neither overlap nor padding: every output pixel is the same matrix times pixels of its own."""
        return prod(self.layout.axes) == 1 and not any(map(any, self.padding))

    @property
    def is_torus(self) -> bool:
        outputs = zip(self.image[1:], self.size, self.stride, strict=True)
        return self.circular and all(m * s == n for m, n, s in outputs)

    def on_torus(self) -> "ConvOperator":
        """The same convolution with circular padding that keeps the map: the model of Theorem 3."""
        padding = tuple((extent // 2, extent - 1 - extent // 2) for extent in self._extent)
        torus = replace(self, padding=padding, circular=True)
        if not torus.is_torus:
            raise UsageError(f"a torus needs a stride that divides the map; got stride {self.stride}, map {self.size}")
        return torus

    def product(self, x: Tensor) -> Tensor:
        """A x, as the layer computes it."""
        padded = self._wrap(x) if self.circular else F.pad(x, _pad(self.padding))
        return _CONVOLVE[len(self.size)](padded, self.kernel, None, self.stride, 0, self.dilation, self.groups)

    def adjoint(self, y: Tensor) -> Tensor:
        """A^T y: what backpropagation does to the gradient."""
        transpose = _TRANSPOSE[len(self.size)]
        padded = transpose(y, self.kernel, None, self.stride, 0, 0, self.groups, self.dilation)
        missing = tuple((0, n - m) for n, m in zip(self._padded, padded.shape[2:], strict=True))
        padded = F.pad(padded, _pad(missing))
        for axis, (index, n) in enumerate(zip(self._sources(y.device), self.size, strict=True), start=2):
            shape = (*padded.shape[:axis], n, *padded.shape[axis + 1 :])
            padded = padded.new_zeros(shape).index_add(axis, index % n, padded) if self.circular else padded
        crop = tuple((-before, -after) for before, after in self.padding)
        return padded if self.circular else F.pad(padded, _pad(crop))

    def spectrum(self) -> Spectrum:
        """All singular values, where they have a closed form: on a torus, or where no two patches overlap."""
        if self.is_torus or self.is_one_matrix:
            return symbol_spectrum(self.kernel, self.layout, self.image[1:], entries=prod(self.domain))
        raise UsageError(
            f"no closed form for padding {self.padding}, {'circular' if self.circular else 'zeros'}, on a map "
            f"{self.size}: take sigma_max() and sigma_min() for bounds, or on_torus().spectrum() for circular padding"
        )

    def sigma_max(self, *, tolerance: float = 1e-6, products: int = 100) -> Bounds:
        """The spectral norm: exact where there is a closed form, by Lanczos to `tolerance` elsewhere."""
        if self.is_torus or self.is_one_matrix:
            return _exact(self.spectrum(), torch.max)
        ritz, residual, used = self._lanczos(tolerance, products)
        top, rounding = ritz[-1].clamp(min=0).sqrt().item(), torch.finfo(self._dtype).eps
        error = residual / max(top, math.ulp(0.0)) + rounding * top  # |sigma^2 - theta| <= residual
        high = max(top, supremum(self.kernel, self.layout))
        method = f"Lanczos on A^T A, {used} products; a singular value is within {error:.1e}"
        return Bounds(low=max(0.0, top - error), high=high, value=top, method=method)

    def sigma_min(self, *, products: int = 100) -> Bounds:
        """The smallest singular value that the stride leaves: exact, or at most what some vector shows."""
        if self.is_torus or self.is_one_matrix:
            return _exact(self.spectrum(), torch.min)
        ritz, _, used = self._lanczos(0.0, products)
        method = f"the smallest Ritz value of {used} Lanczos products: not a value, an upper bound"
        return Bounds(low=0.0, high=ritz[0].clamp(min=0).sqrt().item(), value=None, method=method)

    def kappa(self, *, products: int = 100) -> Bounds:
        """sigma_max / sigma_min; with zero padding at least what the two bounds leave."""
        if self.is_torus or self.is_one_matrix:
            spectrum = self.spectrum()
            found = spectrum.condition
            high = math.inf if found.bounded else found.kappa
            value = None if found.bounded else found.kappa
            method = "; ".join(filter(None, (spectrum.method, found.note)))
            return Bounds(low=found.kappa, high=high, value=value, method=method)
        ritz, _, used = self._lanczos(0.0, products)
        low = (ritz[-1] / ritz[0].clamp(min=0)).sqrt().item()
        return Bounds(low=low, high=math.inf, value=None, method=f"{used} Lanczos products: not a value, a lower bound")

    @property
    def _extent(self) -> tuple[int, ...]:
        return tuple(d * (k - 1) + 1 for d, k in zip(self.dilation, self.kernel.shape[2:], strict=True))

    @property
    def _padded(self) -> tuple[int, ...]:
        return tuple(n + sum(pads) for n, pads in zip(self.size, self.padding, strict=True))

    @property
    def _dtype(self) -> torch.dtype:
        return torch.promote_types(self.kernel.dtype, torch.float32)

    def _sources(self, device: torch.device) -> list[Tensor]:
        pairs = zip(self.size, self.padding, strict=True)
        return [torch.arange(-before, n + after, device=device) for n, (before, after) in pairs]

    def _wrap(self, x: Tensor) -> Tensor:
        for axis, (index, n) in enumerate(zip(self._sources(x.device), self.size, strict=True), start=2):
            x = x.index_select(axis, index % n)
        return x

    def _lanczos(self, tolerance: float, products: int) -> tuple[Tensor, float, int]:
        """Ritz values of A^T A (or A A^T, the smaller), ascending, the residual of the largest, products made."""
        normal = _Normal(replace(self, kernel=self.kernel.to(self._dtype)))
        generator = torch.Generator().manual_seed(0)
        found = lanczos(
            normal,
            steps=products,
            generator=generator,
            enough=lambda krylov: float(krylov.ritz()[2][-1]) <= tolerance * float(krylov.ritz()[0][-1]),
        )
        values, _, residuals = found.ritz()
        return values, float(residuals[-1]), len(values)


@dataclass(frozen=True)
class _Normal:
    """A^T A or A A^T on flat vectors, whichever is smaller."""

    operator: ConvOperator
    mode: str = "none"

    @property
    def inner(self) -> bool:
        return prod(self.operator.domain) <= prod(self.operator.image)

    @property
    def size(self) -> int:
        return prod(self.operator.domain if self.inner else self.operator.image)

    @property
    def dtype(self) -> torch.dtype:
        return self.operator.kernel.dtype

    @property
    def device(self) -> torch.device:
        return self.operator.kernel.device

    def __call__(self, vector: Tensor, /) -> Tensor:
        a = self.operator
        if self.inner:
            return a.adjoint(a.product(vector.view(1, *a.domain))).flatten()
        return a.product(a.adjoint(vector.view(1, *a.image))).flatten()


def conv_operator(
    kernel: Tensor,
    size: int | Sequence[int],
    *,
    stride: int | Sequence[int] = 1,
    padding: int | str | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    padding_mode: str = "zeros",
) -> ConvOperator:
    """The operator of torch's convolution with these arguments on maps of `size`.

    >>> operator = conv_operator(torch.eye(4)[:, :, None, None], 8, stride=2)
    >>> operator.domain, operator.image, str(operator.spectrum().condition)
    ((4, 8, 8), (4, 4, 4), '1')
    """
    checked(kernel)
    dims = kernel.ndim - 2
    if padding_mode not in ("zeros", "circular"):
        raise unknown("padding_mode", padding_mode, ("zeros", "circular"))
    if kernel.shape[0] % groups:
        raise UsageError(f"groups must divide the output channels; got {groups} groups, {kernel.shape[0]} channels")
    dilated = _per_axis("dilation", dilation, dims)
    operator = ConvOperator(
        kernel=kernel.detach(),
        size=_per_axis("size", size, dims),
        stride=_per_axis("stride", stride, dims),
        dilation=dilated,
        groups=groups,
        padding=_padding(padding, tuple(kernel.shape[2:]), dilated),
        circular=padding_mode == "circular",
    )
    if min(operator.image) < 1:
        raise UsageError(f"a kernel {tuple(kernel.shape[2:])} does not fit a map {operator.size}, padded {padding!r}")
    return operator


def of(conv: nn.Module, size: int | Sequence[int]) -> ConvOperator:
    """The operator of a torch convolution layer on maps of `size`, its own padding included."""
    if not isinstance(conv, nn.Conv1d | nn.Conv2d | nn.Conv3d):
        raise UsageError(f"expected a Conv1d, Conv2d or Conv3d; got {type(conv).__name__}")
    return conv_operator(
        conv.weight,
        size,
        stride=conv.stride,
        padding=conv.padding,
        dilation=conv.dilation,
        groups=conv.groups,
        padding_mode=conv.padding_mode,
    )


def symbol_spectrum(kernel: Tensor, form: Layout, grid: tuple[int, ...], *, entries: int | None = None) -> Spectrum:
    """The singular values of P(u) on a torus whose outputs are a `grid`; `entries` is the number of inputs, if known.

    A (2q - 1)-grid determines P^H P everywhere (correlation.py): enough for a bound, for isometry, for a look.
    """
    taps = form.taps(checked(kernel).detach().double())
    taps = taps if taps.shape[-2] >= taps.shape[-1] else taps.mT
    frequencies, multiplicity = _half(grid, torch.device(kernel.device))
    if len(taps) == 1:
        frequencies, multiplicity = frequencies[:1], multiplicity.sum(0, keepdim=True)
        values = torch.linalg.svdvals(taps)
    else:
        values = _by_frequency(taps, form, 2 * torch.pi * frequencies / torch.tensor(grid, device=kernel.device))
    values = values.flatten(1)
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
    table = correlation(form.axes, torch.float64, taps.device)
    lags = table.autocorrelation(table.values(taps))
    found = [_gram_roots(taps, form, lags, piece) for piece in torch.split(angles, max(8, CHUNK // lags[0].numel()))]
    return torch.cat(found)


def _gram_roots(taps: Tensor, form: Layout, lags: Tensor, angles: Tensor) -> Tensor:
    grams = _fourier(angles, lags, [range(1 - q, q) for q in form.axes], form.spacing)
    squares = _eigenvalues(grams)
    values = squares.clamp(min=0).sqrt().flip(-1)
    doubtful = (squares[..., 0] <= WELL_CONDITIONED * squares[..., -1]).any(-1)
    if doubtful.any():
        symbols = _fourier(angles[doubtful], taps, [range(q) for q in form.axes], form.spacing)
        values[doubtful] = torch.linalg.svdvals(symbols)
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


def _exact(spectrum: Spectrum, pick: Callable[[Tensor], Tensor]) -> Bounds:
    value, error = float(pick(spectrum.values)), EXACT * float(spectrum.values.max())
    return Bounds(low=max(0.0, value - error), high=value + error, value=value, method=spectrum.method)


def _pad(pairs: Sequence[tuple[int, int]]) -> list[int]:
    return [amount for pair in reversed(pairs) for amount in pair]


def _per_axis(what: str, given: int | Sequence[int], dims: int) -> tuple[int, ...]:
    values = (given,) * dims if isinstance(given, int) else tuple(given)
    if len(values) != dims or any(value < 1 for value in values):
        raise UsageError(f"expected {dims} positive numbers for {what}; got {given!r}")
    return values


def _padding(
    given: int | str | Sequence[int], kernel: tuple[int, ...], dilation: tuple[int, ...]
) -> tuple[tuple[int, int], ...]:
    totals = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
    if given == "same":
        return tuple((total // 2, total - total // 2) for total in totals)
    if isinstance(given, str):
        if given != "valid":
            raise unknown("padding", given, ("same", "valid"))
        given = 0
    values = (given,) * len(kernel) if isinstance(given, int) else tuple(given)
    if len(values) != len(kernel) or any(value < 0 for value in values):
        raise UsageError(f"expected {len(kernel)} amounts of padding, none negative; got {given!r}")
    return tuple((value, value) for value in values)
