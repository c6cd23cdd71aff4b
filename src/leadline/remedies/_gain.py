"""How much layers enlarge what they are given, from their weights alone."""

from collections.abc import Iterable
from math import prod, sqrt

from torch import nn
from torch.nn.modules.conv import _ConvNd, _ConvTransposeNd

Layer = nn.Linear | _ConvNd


def fan_in(layer: Layer) -> float:
    """Inputs per output.

    >>> fan_in(nn.Conv2d(8, 4, 3, groups=2)), fan_in(nn.ConvTranspose2d(8, 4, 2, stride=2))
    (36.0, 8.0)
    """
    if isinstance(layer, _ConvTransposeNd):
        return layer.in_channels / layer.groups * prod(layer.kernel_size) / prod(layer.stride)
    return float(layer.weight[0].numel())


def gain(layers: Iterable[nn.Module]) -> float:
    """The product of sqrt(fan_in E[w^2] / 2): what ReLU layers in a row make of the size of their input; He gives 1.

    >>> layer = nn.Linear(8, 4)
    >>> _ = nn.init.constant_(layer.weight, 0.25)
    >>> gain([layer, layer])
    0.25
    """
    found = (layer for layer in layers if isinstance(layer, Layer))
    return prod(sqrt(fan_in(layer) * float(layer.weight.detach().double().square().mean()) / 2) for layer in found)
