"""The autocorrelation of a convolution kernel, which decides whether its operator is an isometry, in few products.

A convolution on a torus has the symbol K(z) = sum_t K_t z^t, and K(1/z)^T K(z) = sum_s R_s z^s with
R_s = sum_t K_t^T K_(t+s). All of its singular values are 1, on a map of any size, exactly when R_0 = I and R_s = 0
elsewhere: (2q - 1)^D conditions for q taps per axis, whatever n is (n^D frequencies say the same thing again).

R is a polynomial product, so it is found by evaluating K at 2q - 1 points per axis, multiplying there, and
interpolating (Toom-Cook). The points come in pairs z, 1/z whose products are transposes of each other: a 3 x 3 kernel
costs 13 real products d x c x c instead of 81. Up to four taps the points 0, inf, 1, -2, -1/2, 2, 1/2 of the projective
line serve (single-precision error 2e-7 to 2e-6); above, roots of unity, where the same lines are a Fourier transform.
"""

import cmath
from dataclasses import dataclass
from functools import lru_cache, reduce

import torch
from torch import Tensor

REAL_POINTS = (1.0, 0.0, -2.0, 2.0)  # each but the first stands for itself and its reciprocal


@dataclass(frozen=True)
class Correlation:
    """R(K), its differential and the adjoint of that, for real taps K of shape (q_1 ... q_D, groups, d, c).

    `evaluate` V: tap -> point, `interpolate` W: point -> lag. The points are ordered: those that are their own
    reciprocal, then one of each pair, then the others; lags are row-major, so lag zero is in the middle.
    """

    evaluate: Tensor  # (points, taps)
    interpolate: Tensor  # (lags, points)
    alone: int  # points that are their own reciprocal
    half: int  # ... and one of each pair

    @property
    def centre(self) -> int:
        """Where lag zero is."""
        return len(self.interpolate) // 2

    def values(self, taps: Tensor) -> Tensor:
        """K(z) at every point."""
        return _apply(self.evaluate, taps)

    def mirror(self, values: Tensor) -> Tensor:
        """What was at z, now at 1/z."""
        alone, half = self.alone, self.half
        return torch.cat([values[:alone], values[half:], values[alone:half]])

    def autocorrelation(self, values: Tensor) -> Tensor:
        """R_s = sum_t K_t^T K_(t+s) from the values of K."""
        alone, first, second = values[: self.alone], values[self.alone : self.half], values[self.half :]
        pairs = second.mT @ first
        return self._lags(torch.cat([alone.mT @ alone, pairs, pairs.mT]))

    def differential(self, mirrored: Tensor, change: Tensor) -> Tensor:
        """J dK: the first-order change of R; `mirrored` are the values of K at 1/z, `change` those of dK."""
        product = mirrored.mT @ change
        return self._lags(product + self.mirror(product).mT)

    def adjoint(self, mirrored: Tensor, lags: Tensor) -> Tensor:
        """J^T E as taps, for E with E_(-s) = E_s^T."""
        product = mirrored @ _apply(self.interpolate.T, lags)
        return 2 * _real(_apply(self.evaluate.T, product))

    def _lags(self, products: Tensor) -> Tensor:
        return _real(_apply(self.interpolate, products))


@lru_cache(maxsize=64)
def correlation(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Correlation:
    """The transforms for kernels of `shape` taps.

    >>> correlation((3, 3), torch.float32, torch.device("cpu")).half
    13
    """
    axes = [_axis(taps) for taps in shape]
    one, place = torch.ones(1, 1, dtype=torch.float64), torch.zeros(1, dtype=torch.long)
    evaluate = reduce(_kron, (axis[0] for axis in axes), one)
    interpolate = reduce(_kron, (axis[1] for axis in axes), one)
    partner = reduce(lambda a, b: (a[:, None] * len(b) + b).flatten(), (axis[2] for axis in axes), place)
    here = torch.arange(len(partner))
    alone, first = here[partner == here], here[partner > here]
    order = torch.cat([alone, first, partner[first]])
    kind = dtype if not evaluate.is_complex() else torch.promote_types(dtype, torch.complex64)
    return Correlation(
        evaluate[order].to(kind).to(device),
        interpolate[:, order].to(kind).to(device),
        alone=len(alone),
        half=len(alone) + len(first),
    )


def _axis(taps: int) -> tuple[Tensor, Tensor, Tensor]:
    """Evaluation, interpolation and partners on one axis, at points (x : y) of the projective line, z = x / y."""
    if taps <= len(REAL_POINTS):
        some: list[complex] = list(REAL_POINTS[:taps])
    else:
        some = [cmath.exp(2j * cmath.pi * turn / (2 * taps - 1)) for turn in range(taps)]
    points = [point for z in some for point in ([(z, 1.0)] if z == 1 else [(z, 1.0), (1.0, z)])]
    partner = torch.tensor([points.index((y, x)) for x, y in points])

    def vandermonde(size: int) -> Tensor:
        rows = [[x**power * y ** (size - 1 - power) for power in range(size)] for x, y in points]
        return torch.tensor(rows, dtype=torch.complex128 if taps > len(REAL_POINTS) else torch.float64)

    return vandermonde(taps), torch.linalg.inv(vandermonde(2 * taps - 1)), partner


def _kron(a: Tensor, b: Tensor) -> Tensor:
    kind = torch.promote_types(a.dtype, b.dtype)
    return torch.kron(a.to(kind), b.to(kind))


def _apply(matrix: Tensor, stack: Tensor) -> Tensor:
    return (matrix @ stack.reshape(len(stack), -1).to(matrix.dtype)).view(-1, *stack.shape[1:])


def _real(tensor: Tensor) -> Tensor:
    return tensor.real if tensor.is_complex() else tensor
