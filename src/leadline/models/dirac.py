"""Dirac convolutions: a kernel plus a trained multiple of the identity kernel (Zagoruyko and Komodakis 2017)."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from leadline.core.errors import unknown
from leadline.models.layers import Style

PARAMETRISATIONS = ("additive", "normalised")


class DiracConv2d(nn.Conv2d):
    """A convolution whose kernel is W + diag(a) delta, or beta normalize(W) + diag(alpha) delta.

    `additive` is Oyedotun et al., eq. (28), a = 1 at the start; `normalised` the released second version, where
    normalize divides each output channel's kernel by its norm, alpha = 1 and beta = 0.1. delta has a one at the
    centre of each channel's own kernel. Without `alpha` (None) it is the plain convolution of its W.
    """

    def __init__(self, *args: Any, parametrisation: str = "additive", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.alpha: nn.Parameter | None = nn.Parameter(torch.ones(min(self.in_channels, self.out_channels)))
        self.beta: nn.Parameter | None = None
        if parametrisation == "normalised":
            self.beta = nn.Parameter(torch.full((self.out_channels,), 0.1))

    @property
    def kernel(self) -> Tensor:
        """The kernel that is convolved with."""
        kernel: Tensor = self.weight
        if self.beta is not None:
            unit: Tensor = functional.normalize(kernel.flatten(1))
            kernel = self.beta.view(-1, 1, 1, 1) * unit.view_as(kernel)
        return kernel if self.alpha is None else kernel + self.delta(self.alpha)

    def delta(self, alpha: Tensor) -> Tensor:
        """diag(alpha) delta: alpha_i at the centre of the kernel from channel i to channel i, zero elsewhere."""
        centred = (self.kernel_size[0] // 2,) * 4
        missing = (0, self.in_channels - len(alpha), 0, self.out_channels - len(alpha))
        kernel: Tensor = functional.pad(torch.diag_embed(alpha)[:, :, None, None], centred + missing)
        return kernel

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self._conv_forward(x, self.kernel, self.bias)
        return out


@dataclass(frozen=True, kw_only=True)
class DiracStyle(Style):
    """A style whose convolutions larger than 1x1 are Dirac convolutions."""

    parametrisation: str = "additive"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.parametrisation not in PARAMETRISATIONS:
            raise unknown("parametrisation", self.parametrisation, PARAMETRISATIONS)

    def conv(self, c_in: int, c_out: int, kernel: int, *, stride: int = 1, groups: int = 1) -> nn.Conv2d:
        if kernel == 1:
            return super().conv(c_in, c_out, kernel, stride=stride, groups=groups)
        return DiracConv2d(
            c_in, c_out, kernel, stride, kernel // 2, bias=self.bias, parametrisation=self.parametrisation
        )
