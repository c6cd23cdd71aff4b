"""What the skip of a block is: the identity where it fits, else a projection or a subsampling padded with zeros."""

from collections.abc import Callable
from functools import partial

from torch import Tensor, nn
from torch.nn import functional

from leadline.models.layers import Style, sequence


class ZeroPad(nn.Module):
    """Every stride-th pixel, and channels of zeros after the old ones."""

    def __init__(self, c_in: int, c_out: int, stride: int) -> None:
        super().__init__()
        self.added, self.stride = c_out - c_in, stride

    def forward(self, x: Tensor) -> Tensor:
        return functional.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.added))

    def extra_repr(self) -> str:
        return f"added={self.added}, stride={self.stride}"


def projection(c_in: int, c_out: int, stride: int, *, style: Style, normed: bool) -> nn.Module:
    """A 1x1 convolution, with its norm where the block adds after normalising."""
    conv = style.conv(c_in, c_out, 1, stride=stride)
    norm = style.normalise(c_out) if normed else None
    return sequence(conv=conv, norm=norm)


def skip_maker(c_in: int, c_out: int, stride: int, *, style: Style, normed: bool = False) -> Callable[[], nn.Module]:
    """What builds the skip from c_in to c_out channels; the identity if nothing changes."""
    if c_in == c_out and stride == 1:
        return nn.Identity
    if style.shortcut == "zero-pad" and c_out >= c_in:
        return partial(ZeroPad, c_in, c_out, stride)
    return partial(projection, c_in, c_out, stride, style=style, normed=normed)
