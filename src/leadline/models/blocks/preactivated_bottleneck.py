"""preactivated_bottleneck: 1x1, 3x3 and 1x1 convolutions through a quarter of the channels (He et al. 2016)."""

from leadline.models.layers import BATCH_RELU, Style
from leadline.models.preactivation import preactivated_block
from leadline.models.residual import Residual


def preactivated_bottleneck(
    c_in: int, c_out: int, *, stride: int = 1, style: Style = BATCH_RELU, plain: bool = False, erased: bool = False
) -> Residual:
    """y = conv3(act(norm3(conv2(act(norm2(conv1(z))))))) + skip, stride in conv1 (Zaeemzadeh et al., Fig. 1b, c)."""
    inner = max(c_out // 4, 1)
    channels = (c_in, inner, inner, c_out)
    return preactivated_block(channels, (1, 3, 1), (stride, 1, 1), style=style, plain=plain, erased=erased)
