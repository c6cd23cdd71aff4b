"""Networks with norm and activation before every convolution (He et al. 2016): the branch of a block, stages, head."""

from collections.abc import Sequence

from torch import nn

from leadline.models import stems
from leadline.models.chain import Input
from leadline.models.heads import pooled_linear
from leadline.models.layers import Style, sequence
from leadline.models.residual import Residual
from leadline.models.skips import skip_maker

STEMS = ("cifar", "mnist")


def preactivated_block(
    channels: Sequence[int],
    kernels: Sequence[int],
    strides: Sequence[int],
    *,
    style: Style,
    plain: bool,
    shared: bool | None = None,
    erased: bool = False,
) -> Residual:
    """One block: convolutions between the given channels, each behind its norm and activation.

    Where the shape changes (or if `shared`), the first norm and activation are in front of branch and skip alike.
    `erased` leaves out the last activation of the block (Dong et al. 2017). The branch is `feature`, all but the last
    convolution, and `last`.
    """
    stride = max(strides)
    skip = skip_maker(channels[0], channels[-1], stride, style=style)
    ahead = (skip is not nn.Identity) if shared is None else shared
    convs = [style.conv(channels[i], channels[i + 1], k, stride=strides[i]) for i, k in enumerate(kernels)]
    parts: dict[str, nn.Module | None] = {}
    for i, conv in enumerate(convs, start=1):
        if i > 1 or not ahead:
            parts[f"norm{i}"] = style.normalise(channels[i - 1])
            parts[f"act{i}"] = None if erased and i == len(convs) else style.activate()
        parts[f"conv{i}"] = conv
    last = parts.pop(f"conv{len(convs)}")
    branch = sequence(feature=sequence(**parts), last=last)
    return Residual(branch, pre=style.preactivation(channels[0]) if ahead else None, make_skip=skip, plain=plain)


def input_and_stem(stem: str, in_channels: int | None, width: int, *, style: Style) -> tuple[Input, nn.Module]:
    """The images taken and the stem, a convolution alone: norm and activation belong to the first block."""
    takes = stems.takes(stem, in_channels, STEMS)
    return takes, sequence(conv=stems.convolution(stem, takes.channels, width, style=style))


def activated_head(channels: int, num_classes: int, *, style: Style) -> nn.Module:
    """The head: norm, activation, pooling, linear."""
    return pooled_linear(channels, num_classes, norm=style.normalise(channels), act=style.activate())
