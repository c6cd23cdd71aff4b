"""preresnet and preplain: pre-activation bottleneck blocks (He et al. 2016), and the same layers without skips."""

from collections.abc import Sequence

from leadline.models.blocks.preactivated_bottleneck import preactivated_bottleneck
from leadline.models.chain import Chain
from leadline.models.family import Family
from leadline.models.layers import Style, positive
from leadline.models.preactivation import activated_head, input_and_stem
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
    erased: bool = False,
    plain: bool = False,
) -> Chain:
    """9n + 2 layers; the first block of each stage projects, and shares its norm and activation with the skip."""
    style = Style(norm=norm, activation=activation, shortcut=shortcut)
    _, n = lay_out("preplain-{}" if plain else "preresnet-{}", depth, [Layout(9, 2, "bottleneck")])
    sizes = positive("widths", widths, 3)
    takes, stem_layers = input_and_stem(stem, in_channels, sizes[0], style=style)

    def make(_place: Place, c_in: int, c_out: int, stride: int) -> Residual:
        return preactivated_bottleneck(c_in, c_out, stride=stride, style=style, plain=plain, erased=erased)

    blocks = staged(make, (n, n, n), [4 * width for width in sizes], start=sizes[0])
    return Chain(stem_layers, blocks, activated_head(4 * sizes[-1], num_classes, style=style), takes=takes)


ROWS = {
    "preresnet-20": "Figs 3, 4; Table 1",
    "preresnet-83": "Fig. 3",
    "preresnet-164": "Tables 1, 2, 3; Figs 3, 4, 5",
    "preresnet-1001": "Table 2; Fig. 5",
    "preresnet-164-erased": "Table 2",
    "preresnet-1001-erased": "Table 2",
    "preplain-20": "Figs 3, 4; Table 1",
    "preplain-83": "Fig. 3",
    "preplain-164": "Figs 3, 4; Table 1",
}

FAMILY = Family(
    construct=construct,
    paper="zaeemzadeh2018",
    init="he-fan-in",
    prefixes={"preresnet": {"plain": False}, "preplain": {"plain": True}},
    rows=ROWS,
    variants={"erased": {"erased": True}},
)
