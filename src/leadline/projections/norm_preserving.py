"""The nearest kernel whose convolution has all its singular values at one target, for maps of any size.

A kernel with one tap is a matrix: its polar factor is exact. With more taps the kernel K must meet R(K) = t^2 delta
(linalg/correlation.py), so that the k x k kernel itself has the property and not a full-size ghost of it that is then
cropped. From K the correction D solves min |J D + E|^2 + mu |D|^2, E = R(K)/t^2 - delta, by a few conjugate gradients
on the (2k - 1)-grid (damped Gauss-Newton), again where E has changed. From afar it starts at the projection of
Zaeemzadeh et al., eq. (8), on that grid, cropped.

No local projection exists where the symbol K(z) is square and has two axes or more of taps: det K(z) then has zeros
on the torus of frequencies around which its phase winds, and no small change removes them.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import prod

import torch
from torch import Tensor

from leadline.core.errors import UsageError
from leadline.linalg.conv_spectrum import checked, symbol_spectrum
from leadline.linalg.correlation import Correlation, correlation
from leadline.linalg.polar import nearest, polar
from leadline.linalg.polyphase import Layout, layout
from leadline.linalg.precision import widened

TOLERANCE = 5e-4  # root mean square of sigma^2 / t^2 - 1 at which `project` stops
FAR = 0.5  # |sigma / t - 1| above which a kernel is started afresh from eq. (8)
PROJECT_ROUNDS = 40
CORRECT_ROUNDS, CORRECT_STEPS = 2, 3
TANGENT_STEPS = 4
DAMPING = 0.05  # the most; near the target a third of the violation
LENGTH = 3 / 8  # of a step without line search: the cubic Newton-Schulz step is 1/4, 1/2 may oscillate


@dataclass(frozen=True)
class Isometry:
    """The set a kernel is projected onto: singular values at t = sqrt(d / min(c, d)), times sqrt(2) before a ReLU.

    For stride s and k > 1 the c of the formula is what eq. (7) of Zaeemzadeh et al. counts, the rank of the operator
    over the output's pixels: c times the phases of the stride that the kernel reads (4c for 3x3 at stride 2).
    """

    layout: Layout
    target: float

    @property
    def transposed(self) -> bool:
        return self.layout.matrix[0] < self.layout.matrix[1]

    @property
    def is_matrix(self) -> bool:
        return prod(self.layout.axes) == 1

    @property
    def is_obstructed(self) -> bool:
        rows, columns = self.layout.matrix
        return rows == columns and sum(taps > 1 for taps in self.layout.axes) > 1

    def taps(self, kernel: Tensor) -> Tensor:
        """K / t as (taps, groups, rows, columns) with rows >= columns, in float32 at least."""
        taps = self.layout.taps(kernel.detach().to(torch.promote_types(kernel.dtype, torch.float32))) / self.target
        return taps.mT.contiguous() if self.transposed else taps

    def kernel(self, taps: Tensor, like: Tensor) -> Tensor:
        """The taps as a kernel again, in the type of the one they came from."""
        return self.layout.kernel(self.target * (taps.mT if self.transposed else taps)).to(like.dtype)

    def within(self, taps: Tensor) -> Tensor:
        """Without what the kernel has no place for."""
        if prod(self.layout.axes) * prod(self.layout.reads) == prod(self.layout.shape[2:]):
            return taps
        whole = taps.mT if self.transposed else taps
        kept = self.layout.taps(self.layout.kernel(whole))
        return kept.mT if self.transposed else kept

    def correlation(self, taps: Tensor) -> Correlation:
        return correlation(self.layout.axes, taps.dtype, taps.device)


@lru_cache(maxsize=256)
def isometry(
    shape: tuple[int, ...], *, stride: tuple[int, ...], dilation: tuple[int, ...], groups: int = 1, relu: bool = False
) -> Isometry:
    """The set for kernels of `shape` (d, c / groups, k_1 ... k_D).

    >>> isometry((128, 64, 1, 1), stride=(2, 2), dilation=(1, 1)).target ** 2
    2.0000000000000004
    """
    form = layout(shape, stride=stride, dilation=dilation, groups=groups)
    rank = groups * min(form.matrix)
    return Isometry(form, ((2 if relu else 1) * shape[0] / rank) ** 0.5)


@torch.no_grad()
def project(kernel: Tensor, onto: Isometry) -> Tensor:
    """The kernel on the set, from anywhere: to rounding for one tap, to TOLERANCE for more (then left as it is)."""
    _check(kernel, onto)
    with _full_precision(kernel):
        taps = onto.taps(kernel)
        if onto.is_matrix:
            return onto.kernel(nearest(taps), kernel)
        ended = _descend(_cropped_polar(taps, onto) if deviation(kernel, onto) > FAR else taps, onto)
        return kernel.detach() if ended is taps else onto.kernel(ended, kernel)


@torch.no_grad()
def correct(kernel: Tensor, onto: Isometry, *, rounds: int = CORRECT_ROUNDS, steps: int = CORRECT_STEPS) -> Tensor:
    """The kernel back on the set after a training step: a few products; a kernel that was torn away is projected.

    `rounds` of Gauss-Newton with `steps` conjugate gradients each; 0 steps is one product with a fixed length.
    """
    with _full_precision(kernel):
        taps = onto.taps(kernel)
        if onto.is_matrix:
            return onto.kernel(nearest(taps), kernel)
        table = onto.correlation(taps)
        for _ in range(rounds):
            values = table.values(taps)
            excess, size = _excess(table, values)
            if not size < FAR:
                return project(kernel, onto)
            if size <= TOLERANCE:
                break
            taps = taps + _gauss_newton(onto, values, excess, damping=_damping(size), steps=steps)
        return onto.kernel(taps, kernel)


@torch.no_grad()
def tangent(gradient: Tensor, kernel: Tensor, onto: Isometry) -> Tensor:
    """The part of the gradient along the set: G + D with J (G + D) = 0 and |D| least, to first order in |E|."""
    with _full_precision(kernel):
        taps, change = onto.taps(kernel), onto.taps(gradient)
        table = onto.correlation(taps)
        values = table.values(taps)
        leaving = table.differential(table.mirror(values), table.values(change))
        steps = 1 if onto.is_matrix else TANGENT_STEPS
        return onto.kernel(change + _gauss_newton(onto, values, leaving, damping=0.0, steps=steps), gradient)


def deviation(kernel: Tensor, onto: Isometry) -> float:
    """The largest |sigma / t - 1| over the (2k - 1)-grid: within a twentieth of that over all frequencies."""
    grid = tuple(2 * taps - 1 for taps in onto.layout.axes)
    return float((symbol_spectrum(kernel, onto.layout, grid).values / onto.target - 1).abs().max())


def _check(kernel: Tensor, onto: Isometry) -> None:
    if onto.is_obstructed:
        rows, columns = onto.layout.matrix
        raise UsageError(
            f"a kernel {tuple(kernel.shape)} is square, {rows} x {columns} per frequency, with several taps per axis: "
            "no kernel near it has equal singular values; reparametrise it instead (leadline.projections.orthogonal)"
        )
    if not checked(kernel).any():
        raise UsageError(
            f"a kernel {tuple(kernel.shape)} of zeros: every isometry is equally near; initialise it first"
        )


def _descend(taps: Tensor, onto: Isometry) -> Tensor:
    table = onto.correlation(taps)
    for done in range(PROJECT_ROUNDS):
        values = table.values(taps)
        excess, size = _excess(table, values)
        if size <= TOLERANCE:
            break
        taps = taps + _gauss_newton(onto, values, excess, damping=_damping(size), steps=CORRECT_STEPS + 2 * done)
    return taps


def _damping(size: float) -> float:
    return min(DAMPING, size / 3)


def _excess(table: Correlation, values: Tensor) -> tuple[Tensor, float]:
    """E = R - delta, and the root mean square of sigma^2 - 1 over all frequencies (Parseval)."""
    excess = table.autocorrelation(values)
    excess[table.centre].diagonal(dim1=-2, dim2=-1).sub_(1)
    count = excess.shape[1] * excess.shape[2]
    return excess, float(torch.linalg.vector_norm(excess)) / count**0.5


def _gauss_newton(onto: Isometry, values: Tensor, excess: Tensor, *, damping: float, steps: int) -> Tensor:
    """The D of `steps` conjugate gradients on min |J D + E|^2 + mu |D|^2, from D = 0."""
    table = onto.correlation(values)
    mirrored = table.mirror(values)
    residual, descent = -excess, -onto.within(table.adjoint(mirrored, excess))
    if steps == 0:
        return LENGTH * descent
    total, direction, slope = torch.zeros_like(descent), descent, descent.square().sum()
    for step in range(steps):
        image = table.differential(mirrored, table.values(direction))
        curvature = image.square().sum() + damping * direction.square().sum()
        length = slope / curvature.clamp(min=torch.finfo(curvature.dtype).tiny)
        total = total + length * direction
        if step == steps - 1:
            break
        residual = residual - length * image
        descent = onto.within(table.adjoint(mirrored, residual)) - damping * total
        former, slope = slope, descent.square().sum()
        direction = descent + slope / former.clamp(min=torch.finfo(former.dtype).tiny) * direction
    return total


def _cropped_polar(taps: Tensor, onto: Isometry) -> Tensor:
    """Eq. (8) on the (2q - 1)-grid from the singular value decomposition, cropped to the taps there are."""
    axes = onto.layout.axes
    grid, dims = tuple(2 * taps - 1 for taps in axes), tuple(range(len(axes)))
    symbol = torch.fft.fftn(widened(taps).view(*axes, *taps.shape[1:]), s=grid, dim=dims)
    whole = torch.fft.ifftn(polar(symbol).nearest, dim=dims).real
    cropped = whole[tuple(slice(0, taps) for taps in axes)].flatten(0, len(axes) - 1)
    return onto.within(cropped.to(taps).contiguous())


def _full_precision(kernel: Tensor) -> torch.autocast:
    return torch.autocast(kernel.device.type, enabled=False)
