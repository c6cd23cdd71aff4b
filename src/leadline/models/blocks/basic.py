"""basic: two 3x3 convolutions, activated after the addition (He et al. 2015)."""

from leadline.models.layers import BATCH_RELU, Style, sequence
from leadline.models.residual import Residual
from leadline.models.skips import skip_maker


def basic(
    c_in: int, c_out: int, *, stride: int = 1, style: Style = BATCH_RELU, plain: bool = False, inner: int | None = None
) -> Residual:
    """y = act(norm2(conv2(act(norm1(conv1(x))))) + skip(x)), `inner` channels between the two (default c_out).

    The sum over m paths of two layers, Oyedotun et al., eq. (4), is this block with inner = m x width.
    """
    inner = inner or c_out
    branch = sequence(
        conv1=style.conv(c_in, inner, 3, stride=stride),
        norm1=style.normalise(inner),
        act1=style.activate(),
        conv2=style.conv(inner, c_out, 3),
        norm2=style.normalise(c_out),
    )
    skip = skip_maker(c_in, c_out, stride, style=style, normed=True)
    return Residual(branch, post=style.activate(), make_skip=skip, plain=plain)
