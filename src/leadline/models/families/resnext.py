"""resnext: residual networks that add up the features of several narrow paths (Xie et al. 2017).

The paper (Oyedotun et al., eq. (4)) states neither cardinality nor width: 8 paths of width 4 on small images, 32 of
width 4 on ImageNet; bottleneck blocks wherever the depth is 9n + 2, two-layer paths otherwise.
"""

from collections.abc import Sequence

from leadline.models.blocks.basic import basic
from leadline.models.blocks.bottleneck import bottleneck
from leadline.models.chain import Chain
from leadline.models.family import Family
from leadline.models.layers import Style, positive
from leadline.models.postactivation import BASIC, BOTTLENECK, checked_widths, counted, postactivation
from leadline.models.residual import Residual
from leadline.models.stages import Place


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
    cardinality: int | None = None,
    path_width: int = 4,
) -> Chain:
    """`cardinality` paths, `path_width` channels wide in the first stage and wider in step with `widths`."""
    style = Style(norm=norm, activation=activation, shortcut=shortcut)
    sizes = checked_widths(widths, stem=stem)
    kind, counts = counted("resnext-{}", depth, (BOTTLENECK, BASIC), stem=stem, block=block)
    usual = 32 if stem == "imagenet" else 8
    paths, width = positive("(cardinality, path_width)", (usual if cardinality is None else cardinality, path_width), 2)

    def make(place: Place, c_in: int, c_out: int, stride: int) -> Residual:
        inner = paths * (width * sizes[place[0] - 1] // sizes[0])
        if kind == "basic":
            return basic(c_in, c_out, stride=stride, style=style, inner=inner)
        return bottleneck(c_in, c_out, stride=stride, style=style, inner=inner, groups=paths)

    return postactivation(
        make,
        counts,
        block=kind,
        widths=sizes,
        stem=stem,
        in_channels=in_channels,
        num_classes=num_classes,
        style=style,
    )


ROWS = {
    "20": "",
    "101": "Table 3",
    "110": "Tables 1, 2; Figs 2-9",
    "164": "",
    "164-linear": "Figs 12, 13",
    "200": "Figs 10, 11",
    "101-imagenet": "Table 4; Fig. 8",
}

FAMILY = Family(
    construct=construct,
    paper="oyedotun2021",
    init="he-fan-in",
    prefixes={"resnext": {}},
    rows={f"resnext-{depth}": row for depth, row in ROWS.items()},
    variants={"linear": {"activation": "identity"}, "imagenet": {"stem": "imagenet"}},
)
