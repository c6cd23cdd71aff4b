"""resnet and plainnet: blocks activated after the addition (He et al. 2015), and the same layers without skips.

The paper (Oyedotun et al.) leaves blocks, widths and shortcuts open: basic blocks 16-32-64 wherever the depth is
6n + 2, bottleneck blocks otherwise, 1x1 projections where the shape changes; on ImageNet the stages of He et al.
"""

from collections.abc import Sequence

from leadline.models.blocks.basic import basic
from leadline.models.blocks.bottleneck import bottleneck
from leadline.models.chain import Chain
from leadline.models.family import Family
from leadline.models.layers import Style
from leadline.models.postactivation import BASIC, BOTTLENECK, checked_widths, counted, postactivation
from leadline.models.residual import Residual
from leadline.models.stages import Place

BLOCKS = {"basic": basic, "bottleneck": bottleneck}


def construct(
    depth: int,
    *,
    num_classes: int | None = None,
    in_channels: int | None = None,
    stem: str = "cifar",
    norm: str = "batch",
    activation: str = "relu",
    widths: Sequence[int] | None = None,
    block: str | None = None,
    shortcut: str = "projection",
    plain: bool = False,
) -> Chain:
    """6n + 2 layers in basic or 9n + 2 in bottleneck blocks on three stages; ImageNet depths on four."""
    style = Style(norm=norm, activation=activation, shortcut=shortcut)
    label = "plainnet-{}" if plain else "resnet-{}"
    kind, counts = counted(label, depth, (BASIC, BOTTLENECK), stem=stem, block=block)

    def make(_place: Place, c_in: int, c_out: int, stride: int) -> Residual:
        return BLOCKS[kind](c_in, c_out, stride=stride, style=style, plain=plain)

    return postactivation(
        make,
        counts,
        block=kind,
        widths=checked_widths(widths, stem=stem),
        stem=stem,
        in_channels=in_channels,
        num_classes=num_classes,
        style=style,
    )


ROWS = {
    "20": "",
    "32": "",
    "44": "",
    "56": "",
    "101": "Table 3",
    "110": "Tables 1, 2; Figs 2-9",
    "164": "",
    "164-linear": "Figs 12, 13",
    "200": "Figs 10, 11",
    "1001": "",
    "1202": "",
    "101-imagenet": "Table 4; Fig. 8",
}

FAMILY = Family(
    construct=construct,
    paper="oyedotun2021",
    init="he-fan-in",
    prefixes={"resnet": {"plain": False}, "plainnet": {"plain": True}},
    rows={f"{prefix}-{depth}": row for prefix in ("plainnet", "resnet") for depth, row in ROWS.items()},
    variants={"linear": {"activation": "identity"}, "imagenet": {"stem": "imagenet"}},
)
