"""Stems: the first layers and the images they are made for."""

from collections.abc import Sequence

from torch import nn

from leadline.core.errors import UsageError
from leadline.models.chain import Input
from leadline.models.layers import Style, sequence

STEMS = ("cifar", "mnist", "imagenet")


def takes(stem: str, in_channels: int | None, allowed: Sequence[str] = STEMS) -> Input:
    """The images a stem is for: cifar and mnist keep the size (3 or 1 channels), imagenet divides it by four."""
    if stem not in allowed:
        raise UsageError(f"stem={stem!r}: expected one of {', '.join(allowed)}")
    if stem == "imagenet":
        hint = "; stem='cifar' or stem='mnist' takes small images, in_channels other channels"
        return Input(channels=in_channels or 3, size=224, smallest=64, hint=hint)
    size, channels = (28, 1) if stem == "mnist" else (32, 3)
    hint = "; in_channels=1 or stem='mnist' takes grey images" + ", stem='imagenet' large ones" * (
        "imagenet" in allowed
    )
    return Input(channels=in_channels or channels, size=size, smallest=4, largest=96, hint=hint)


def convolution(stem: str, channels: int, width: int, *, style: Style) -> nn.Conv2d:
    """The first convolution: 3x3, or 7x7 with stride 2 for ImageNet."""
    return style.conv(channels, width, 7, stride=2) if stem == "imagenet" else style.conv(channels, width, 3)


def activated(stem: str, channels: int, width: int, *, style: Style) -> nn.Sequential:
    """Convolution, norm and activation; for ImageNet also the 3x3 max pooling with stride 2."""
    return sequence(
        conv=convolution(stem, channels, width, style=style),
        norm=style.normalise(width),
        act=style.activate(),
        pool=nn.MaxPool2d(3, 2, 1) if stem == "imagenet" else None,
    )
