"""bottleneck: 1x1, 3x3 and 1x1 convolutions through fewer channels, activated after the addition (He et al. 2015)."""

from leadline.models.layers import BATCH_RELU, Style, sequence
from leadline.models.residual import Residual
from leadline.models.skips import skip_maker


def bottleneck(
    c_in: int,
    c_out: int,
    *,
    stride: int = 1,
    style: Style = BATCH_RELU,
    plain: bool = False,
    inner: int | None = None,
    groups: int = 1,
) -> Residual:
    """y = act(norm3(conv3(act(norm2(conv2(act(norm1(conv1(x)))))))) + skip(x)), `inner` channels inside (c_out / 4).

    With groups > 1, conv2 sees each group alone: the aggregated paths of ResNeXt (Xie et al. 2017).
    """
    inner = inner or max(c_out // 4, 1)
    branch = sequence(
        conv1=style.conv(c_in, inner, 1),
        norm1=style.normalise(inner),
        act1=style.activate(),
        conv2=style.conv(inner, inner, 3, stride=stride, groups=groups),
        norm2=style.normalise(inner),
        act2=style.activate(),
        conv3=style.conv(inner, c_out, 1),
        norm3=style.normalise(c_out),
    )
    skip = skip_maker(c_in, c_out, stride, style=style, normed=True)
    return Residual(branch, post=style.activate(), make_skip=skip, plain=plain)
