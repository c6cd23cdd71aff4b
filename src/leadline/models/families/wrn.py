"""wrn: wide pre-activation networks (Zagoruyko and Komodakis 2016), with the endings of Chen et al., Tables 1 and 2."""

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
    widening: int,
    *,
    num_classes: int = 10,
    in_channels: int | None = None,
    stem: str = "cifar",
    norm: str = "batch",
    activation: str = "relu",
    ending: str = "standard",
) -> Chain:
    """6n + 4 layers, the two projections counted; widths 16, 32, 64 times `widening`, the first of them in the stem."""
    style = Style(norm=norm, activation=activation)
    _, n = lay_out(f"wrn-{{}}-{widening}", depth, [Layout(6, 4, "basic")])
    factor = positive("widening", [widening], 1)[0]
    sizes = (16 * factor, 32 * factor, 64 * factor)
    takes, stem_layers = input_and_stem(stem, in_channels, sizes[0], style=style)

    def make(_place: Place, c_in: int, c_out: int, stride: int) -> Residual:
        return preactivated_basic(c_in, c_out, stride=stride, style=style)

    blocks = staged(make, (n, n, n), sizes, start=sizes[0])
    chain = endings.end(
        ending, stem_layers, blocks, channels=sizes[-1], num_classes=num_classes, style=style, takes=takes
    )
    chain.counts_skips = True
    return chain


PREFIXES = endings.prefixes("wrn")

FAMILY = Family(
    construct=construct,
    paper="chen2021",
    init="pytorch",
    prefixes=PREFIXES,
    rows={f"{prefix}-{size}": f"Tables 1, 2: WRN-{size}" for prefix in PREFIXES for size in ("16-8", "40-4")},
    numbers=(2,),
)
