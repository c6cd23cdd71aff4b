"""The layers all families share, and the style that decides between batch norm or none, ReLU or linear."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from leadline.core.errors import UsageError, unknown


class SymmetricSigmoid(nn.Module):
    """sigma_s(x) = (1 - exp(-x)) / (1 + exp(-x)) = tanh(x / 2), so that sigma_s(0) = 0."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(x / 2)


ACTIVATIONS: dict[str, Callable[[], nn.Module] | None] = {
    "identity": None,
    "relu": nn.ReLU,
    "tanh": nn.Tanh,
    "symmetric-sigmoid": SymmetricSigmoid,
}
NORMS = ("batch", "none")


def activation(name: str) -> nn.Module | None:
    """A new activation layer; nothing at all for the identity."""
    if name not in ACTIVATIONS:
        raise unknown("activation", name, ACTIVATIONS)
    make = ACTIVATIONS[name]
    return make() if make else None


def sequence(**modules: nn.Module | None) -> nn.Sequential:
    """The given modules in a row under their names; what is None is left out."""
    return nn.Sequential(OrderedDict((name, module) for name, module in modules.items() if module is not None))


class Transition(nn.Conv2d):
    """conv*: a convolution that changes width or size and is to be kept norm-preserving (Zaeemzadeh et al., Fig. 1d).

    It starts with all singular values at sqrt(d / min(c, d)), c channels in and d out: exactly so for 1x1 kernels and
    for k x k ones with d >= k^2 c, where an orthogonal d x k^2 c matrix times sqrt(d / c) / k is such a kernel.
    """

    def reset_parameters(self) -> None:
        c, d = self.in_channels, self.out_channels
        gain = (d / min(c, d)) ** 0.5 / self.kernel_size[0]
        nn.init.orthogonal_(self.weight, gain=gain)
        if self.bias is not None:
            nn.init.zeros_(self.bias)


@dataclass(frozen=True, kw_only=True)
class Style:
    """What a block is made of: `norm` batch or none, `activation`, and the `shortcut` used where the shape changes.

    Convolutions have a bias only where there is no batch norm. Shortcuts: a 1x1 "projection", or "zero-pad", which
    takes every stride-th pixel and adds channels of zeros (option A of He et al. 2015).
    """

    norm: str = "batch"
    activation: str = "relu"
    shortcut: str = "projection"

    def __post_init__(self) -> None:
        if self.norm not in NORMS:
            raise unknown("norm", self.norm, NORMS)
        if self.activation not in ACTIVATIONS:
            raise unknown("activation", self.activation, ACTIVATIONS)
        if self.shortcut not in ("projection", "zero-pad"):
            raise unknown("shortcut", self.shortcut, ("projection", "zero-pad"))

    @property
    def bias(self) -> bool:
        return self.norm == "none"

    def conv(self, c_in: int, c_out: int, kernel: int, *, stride: int = 1, groups: int = 1) -> nn.Conv2d:
        return nn.Conv2d(c_in, c_out, kernel, stride, kernel // 2, groups=groups, bias=self.bias)

    def normalise(self, channels: int) -> nn.Module | None:
        return nn.BatchNorm2d(channels) if self.norm == "batch" else None

    def activate(self) -> nn.Module | None:
        return activation(self.activation)

    def preactivation(self, channels: int) -> nn.Sequential | None:
        """Norm and activation, as one module; None if there is neither."""
        layers = sequence(norm=self.normalise(channels), act=self.activate())
        return layers if len(layers) else None


BATCH_RELU = Style()


def positive(what: str, values: Sequence[int], count: int) -> tuple[int, ...]:
    """The values as a tuple if they are `count` positive integers; else one line that says so.

    >>> positive("widths", [16, 32, 64], 3)
    (16, 32, 64)
    """
    found = tuple(values)
    if len(found) != count or any(not isinstance(value, int) or value < 1 for value in found):
        raise UsageError(f"{what}={found}: expected {count} positive whole number{'s' * (count != 1)}")
    return found
