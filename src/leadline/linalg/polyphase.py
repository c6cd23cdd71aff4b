"""A strided, dilated, grouped kernel as the taps of a convolution of stride one.

A kernel position p = dilation * i belongs to phase p mod stride and hop p // stride: reading the map as stride^D
interleaved maps makes every phase a channel of its own, and the convolution one of stride 1 over the hops. The phases
that no tap reads are left out: they only add singular values that are zero. A kernel of one hop (1 x 1 at any stride,
a patch embedding) is a single matrix, the same at every frequency.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import gcd, prod
from types import EllipsisType

import torch
from torch import Tensor


@dataclass(frozen=True)
class Layout:
    """Where entry i of an axis goes: `phases[axis][i]`, `hops[axis][i]`; hop h is h * `spacing[axis]` pixels apart."""

    shape: tuple[int, ...]  # of the kernel: (d, c / groups, k_1 ... k_D)
    groups: int
    phases: tuple[tuple[int, ...], ...]
    hops: tuple[tuple[int, ...], ...]
    spacing: tuple[int, ...]

    @cached_property
    def axes(self) -> tuple[int, ...]:
        """Taps per axis: q_1 ... q_D."""
        return tuple(max(hops) + 1 for hops in self.hops)

    @cached_property
    def reads(self) -> tuple[int, ...]:
        """Phases per axis that are read."""
        return tuple(max(phases) + 1 for phases in self.phases)

    @property
    def matrix(self) -> tuple[int, int]:
        """Rows and columns of one tap: d / groups and c / groups times the phases read."""
        return self.shape[0] // self.groups, self.shape[1] * prod(self.reads)

    @property
    def plain(self) -> bool:
        """Stride one: the taps are the kernel, only arranged otherwise."""
        return prod(self.reads) == 1 and self.axes == self.shape[2:]

    def taps(self, kernel: Tensor) -> Tensor:
        """(q_1 ... q_D, groups, rows, columns), zero where the kernel has no entry."""
        dims = len(self.axes)
        split = kernel.reshape(self.groups, -1, *self.shape[1:])  # (groups, d / groups, c / groups, k_1 ... k_D)
        if self.plain:
            return split.permute(*range(3, 3 + dims), 0, 1, 2).flatten(0, dims - 1).contiguous()
        spread = split.new_zeros(*split.shape[:3], *self.reads, *self.axes)
        spread[self._where(kernel.device)] = split
        order = (*range(3 + dims, 3 + 2 * dims), *range(3 + dims))
        return spread.permute(order).reshape(prod(self.axes), self.groups, *self.matrix)

    def kernel(self, taps: Tensor) -> Tensor:
        """The kernel with these taps; entries it has no place for are dropped."""
        dims = len(self.axes)
        split = taps.view(*self.axes, self.groups, self.matrix[0], self.shape[1], *self.reads)
        split = split.permute(*range(dims, 3 + 2 * dims), *range(dims))
        if self.plain:
            return split.reshape(self.shape)
        return split[self._where(taps.device)].reshape(self.shape)

    def _where(self, device: torch.device) -> tuple[EllipsisType | Tensor, ...]:
        def along(axis: int, places: tuple[int, ...]) -> Tensor:
            return torch.tensor(places, device=device).view([-1 if a == axis else 1 for a in range(len(self.axes))])

        return ..., *(along(*place) for place in (*enumerate(self.phases), *enumerate(self.hops)))


@lru_cache(maxsize=256)
def layout(shape: tuple[int, ...], *, stride: tuple[int, ...], dilation: tuple[int, ...], groups: int = 1) -> Layout:
    """The layout of kernels of `shape`.

    >>> layout((32, 16, 3, 3), stride=(2, 2), dilation=(1, 1)).matrix
    (32, 64)
    """
    axes = [_axis(*axis) for axis in zip(shape[2:], stride, dilation, strict=True)]
    phases, hops, spacing = zip(*axes, strict=True)
    return Layout(shape, groups, phases, hops, spacing)


def _axis(taps: int, stride: int, dilation: int) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    positions = [dilation * tap for tap in range(taps)]
    read = sorted({position % stride for position in positions})
    spacing = gcd(*(position // stride for position in positions)) or 1
    phases = tuple(read.index(position % stride) for position in positions)
    return phases, tuple(position // stride // spacing for position in positions), spacing
