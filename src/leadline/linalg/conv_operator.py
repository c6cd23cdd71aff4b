"""A convolution as a linear operator: products for the real padding, singular values, norm and kappa with their errors.

On a torus, and where no two patches overlap, its singular values are those of one matrix per frequency
(conv_spectrum.py). Zero padding cuts a finite piece out of the operator on the infinite plane, so sup |P| bounds its
norm from above; Lanczos bounds it from below and says how closely. Its smallest singular value has no such handle:
only bounds.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from leadline.core.errors import UsageError, unknown
from leadline.linalg.conv_spectrum import Spectrum as Spectrum
from leadline.linalg.conv_spectrum import checked, symbol_spectrum
from leadline.linalg.conv_spectrum import supremum as supremum
from leadline.linalg.lanczos import lanczos
from leadline.linalg.polyphase import Layout, layout

EXACT = 1e-12  # error of a singular value over sigma_max

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
