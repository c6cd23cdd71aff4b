"""preresnet-basic: pre-activation basic blocks (He et al. 2016), with the endings of Chen et al., Tables 1 and 2."""

from collections.abc import Sequence

from leadline.models import endings
from leadline.models.blocks.preactivated_basic import preactivated_basic
from leadline.models.chain import Chain
from leadline.models.family import Family
from leadline.models.layers import Style, positive
from leadline.models.preactivation import input_and_stem
from leadline.models.residual import Residual
from leadline.models.stages import Layout, Place, lay_out, staged


def construct(
    depth: int,
    *,
    num_classes: int = 10,
    in_channels: int | None = None,
    stem: str = "cifar",
    norm: str = "batch",
    activation: str = "relu",
    widths: Sequence[int] = (16, 32, 64),
    shortcut: str = "projection",
    ending: str = "standard",
) -> Chain:
    """6n + 2 layers; where the shape changes, norm and activation are shared and the skip is a 1x1 convolution."""
    style = Style(norm=norm, activation=activation, shortcut=shortcut)
    _, n = lay_out("preresnet-basic-{}", depth, [Layout(6, 2, "basic")])
    sizes = positive("widths", widths, 3)
    takes, stem_layers = input_and_stem(stem, in_channels, sizes[0], style=style)

    def make(_place: Place, c_in: int, c_out: int, stride: int) -> Residual:
        return preactivated_basic(c_in, c_out, stride=stride, style=style)

    blocks = staged(make, (n, n, n), sizes, start=sizes[0])
    return endings.end(
        ending, stem_layers, blocks, channels=sizes[-1], num_classes=num_classes, style=style, takes=takes
    )


PREFIXES = endings.prefixes("preresnet-basic")

FAMILY = Family(
    construct=construct,
    paper="chen2021",
    init="pytorch",
    prefixes=PREFIXES,
    rows={f"{prefix}-{depth}": f"Tables 1, 2: ResNet-{depth}" for prefix in PREFIXES for depth in (20, 110)},
)
