"""procresnet: preresnet whose dimensions change in norm-preserving convolutions in front of identity blocks."""

from collections.abc import Sequence

from torch import nn

from leadline.models import stems
from leadline.models.blocks.preactivated_bottleneck import preactivated_bottleneck
from leadline.models.blocks.transition import transition
from leadline.models.chain import Chain
from leadline.models.family import Family
from leadline.models.layers import Style, positive, sequence
from leadline.models.preactivation import STEMS, activated_head
from leadline.models.stages import Layout, lay_out


def construct(
    depth: int,
    *,
    num_classes: int = 10,
    in_channels: int | None = None,
    stem: str = "cifar",
    norm: str = "batch",
    activation: str = "relu",
    widths: Sequence[int] = (16, 32, 64),
    erased: bool = False,
    projected: bool = True,
) -> Chain:
    """9n + 4 layers (Zaeemzadeh et al., Fig. 1d): conv* 3x3 as the stem, conv* 1x1 with stride 2 before stages 2, 3.

    Without `projected`, the three are ordinary convolutions: the "modified, no projection" row of Table 3.
    """
    style = Style(norm=norm, activation=activation)
    _, n = lay_out("procresnet-{}", depth, [Layout(9, 4, "bottleneck")])
    outputs = [4 * width for width in positive("widths", widths, 3)]
    takes = stems.takes(stem, in_channels, STEMS)
    expand = transition(takes.channels, outputs[0], kernel=3, style=style, projected=projected)
    blocks: dict[str, nn.Module] = {}
    for stage, width in enumerate(outputs, start=1):
        if stage > 1:
            before = outputs[stage - 2]
            blocks[f"transition{stage}"] = transition(before, width, stride=2, style=style, projected=projected)
        for block in range(1, n + 1):
            blocks[f"stage{stage}_block{block}"] = preactivated_bottleneck(width, width, style=style, erased=erased)
    return Chain(sequence(conv=expand), blocks, activated_head(outputs[-1], num_classes, style=style), takes=takes)


ROWS = {
    "procresnet-22": "Figs 3, 4; Table 1 (as 20)",
    "procresnet-85": "Fig. 3; Table 1 (as 83)",
    "procresnet-166": "Tables 1, 2, 3; Figs 3, 4, 5",
    "procresnet-274": "Fig. 5",
    "procresnet-1003": "Table 2; Fig. 5",
    "procresnet-166-erased": "Table 2",
    "procresnet-1003-erased": "Table 2",
    "procresnet-166-unprojected": "Table 3",
}

FAMILY = Family(
    construct=construct,
    paper="zaeemzadeh2018",
    init="he-fan-in",
    prefixes={"procresnet": {}},
    rows=ROWS,
    variants={"erased": {"erased": True}, "unprojected": {"projected": False}},
)
