"""preactivated_basic: 3x3 convolutions, each behind its norm and activation (He et al. 2016)."""

from leadline.models.layers import BATCH_RELU, Style
from leadline.models.preactivation import preactivated_block
from leadline.models.residual import Residual


def preactivated_basic(
    c_in: int,
    c_out: int,
    *,
    stride: int = 1,
    style: Style = BATCH_RELU,
    plain: bool = False,
    shared: bool | None = None,
    layers: int = 2,
) -> Residual:
    """y = conv_n(act(norm(... conv_1(act(norm(x)))))) + skip; `layers` = n is the depth of the shortcut."""
    channels = [c_in] + [c_out] * layers
    strides = [stride] + [1] * (layers - 1)
    return preactivated_block(channels, [3] * layers, strides, style=style, plain=plain, shared=shared)
