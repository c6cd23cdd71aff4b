"""transition: one convolution alone, in front of the blocks of a stage, that changes width and size (conv*)."""

from torch import nn

from leadline.models.layers import BATCH_RELU, Style, Transition


def transition(
    c_in: int, c_out: int, *, stride: int = 1, style: Style = BATCH_RELU, kernel: int = 1, projected: bool = True
) -> nn.Conv2d:
    """y = conv*(x) (Zaeemzadeh et al., Fig. 1d); an ordinary convolution if it is not to be `projected`."""
    kind = Transition if projected else nn.Conv2d
    return kind(c_in, c_out, kernel, stride, kernel // 2, bias=style.bias)
