"""Kernels that have equal singular values by construction, for square ones too: a parametrisation, not a projection.

With an orthogonal projector P, P + (I - P) z is unitary for every |z| = 1, since P (I - P) = 0. So

    K(z_1 ... z_D) = t prod_axes prod_(j < k) (P_j + (I - P_j) z_axis) H,   H^T H = I

has k taps per axis and all singular values t at every frequency, exactly. P_j = U_j U_j^T and H come from free
matrices by QR. It covers a connected part of all such kernels (half of each factor's space is delayed, half is not).
"""

from math import prod

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from leadline.core.errors import UsageError
from leadline.linalg.conv_spectrum import checked
from leadline.linalg.polar import polar
from leadline.projections.norm_preserving import Isometry, isometry
from leadline.projections.shape_changes import CONVOLUTIONS, Conv


class OrthogonalKernel(nn.Module):
    """(frame, planes) -> kernel; `torch.nn.utils.parametrize` keeps the two as the parameters to train."""

    def __init__(self, onto: Isometry, *, seed: int = 0) -> None:
        super().__init__()
        self.onto, self.seed = onto, seed

    def forward(self, frame: Tensor, planes: Tensor) -> Tensor:
        with torch.autocast(frame.device.type, enabled=False):
            kind = torch.promote_types(frame.dtype, torch.float32)
            kernel = self.onto.kernel(self._taps(frame.to(kind), planes.to(kind)), frame)
        return kernel.contiguous()

    def right_inverse(self, kernel: Tensor) -> tuple[Tensor, Tensor]:
        """H from the sum K(1) of the taps, which is t H; the planes, which no kernel off the set has, at random."""
        taps = self.onto.taps(checked(kernel))
        rows, factors = taps.shape[-2], sum(n - 1 for n in self.onto.layout.axes)
        generator = torch.Generator().manual_seed(self.seed)
        planes = torch.randn(factors, taps.shape[1], rows, (rows + 1) // 2, generator=generator)
        return polar(taps.sum(0)).nearest.to(kernel.dtype), planes.to(kernel)

    def _taps(self, frame: Tensor, planes: Tensor) -> Tensor:
        axes = self.onto.layout.axes
        rows = frame.shape[-2]
        bases = torch.linalg.qr(planes).Q if len(planes) else planes
        taps = _signed_q(frame).view(*(1 for _ in axes), *frame.shape)
        factor = 0
        for axis, length in enumerate(axes):
            for _ in range(length - 1):
                basis = bases[factor][..., : (rows + factor % 2) // 2]  # of odd dimensions the larger half in turn
                stays = basis @ (basis.mT @ taps)
                taps = _pad(stays, axis, after=True) + _pad(taps - stays, axis, after=False)
                factor += 1
        return taps.reshape(prod(axes), *frame.shape)


def orthogonal(conv: Conv, *, relu: bool = False, seed: int = 0) -> Conv:
    """Makes the kernel of a convolution orthogonal by construction, in place.

    `torch.nn.utils.parametrize.remove_parametrizations` leaves the kernel reached as an ordinary parameter.

    >>> conv = orthogonal(nn.Conv2d(4, 4, 3, padding=1, padding_mode="circular", bias=False))
    >>> x = torch.randn(1, 4, 8, 8)
    >>> bool(torch.isclose(conv(x).norm(), x.norm()))
    True
    """
    if not isinstance(conv, CONVOLUTIONS):
        raise UsageError(f"expected a Conv1d, Conv2d or Conv3d; got {type(conv).__name__}")
    onto = isometry(tuple(conv.weight.shape), stride=conv.stride, dilation=conv.dilation, groups=conv.groups, relu=relu)
    if not onto.is_matrix and not onto.layout.plain:
        raise UsageError(f"expected stride 1, or a kernel no larger than its stride; got {tuple(conv.stride)}")
    parametrize.register_parametrization(conv, "weight", OrthogonalKernel(onto, seed=seed))
    return conv


def _signed_q(matrix: Tensor) -> Tensor:
    """Q of the QR factorisation with a positive diagonal of R: unique, and continuous in the matrix."""
    q, r = torch.linalg.qr(matrix)
    signs: Tensor = torch.where(r.diagonal(dim1=-2, dim2=-1) < 0, -1.0, 1.0).to(q)
    signed: Tensor = q * signs[..., None, :]
    return signed


def _pad(taps: Tensor, axis: int, *, after: bool) -> Tensor:
    shape = list(taps.shape)
    shape[axis] = 1
    blank = taps.new_zeros(shape)
    return torch.cat([taps, blank] if after else [blank, taps], dim=axis)
