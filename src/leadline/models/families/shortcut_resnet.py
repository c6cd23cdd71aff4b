"""shortcut-resnet: pre-activation networks on images whose skips span n convolutions (Li et al., Figs 2 and 9).

The depth in the name is that of n = 2; other n cut the same layers into longer or shorter blocks, so that the number
of parameters stays the same where n divides the layers of a stage and nearly so elsewhere: the network's `note` says
by how much. First blocks of a stage share norm and activation with the skip, and skips that change the shape
subsample and add channels of zeros.
"""

from collections.abc import Sequence

import torch

from leadline.models.blocks.preactivated_basic import preactivated_basic
from leadline.models.chain import Chain
from leadline.models.family import Family
from leadline.models.layers import Style, positive
from leadline.models.preactivation import activated_head, input_and_stem
from leadline.models.residual import Residual
from leadline.models.stages import Layout, Place, lay_out, staged


def construct(
    depth: int,
    *,
    shortcut: int = 2,
    num_classes: int = 10,
    in_channels: int | None = None,
    stem: str = "cifar",
    norm: str = "batch",
    activation: str = "relu",
    widths: Sequence[int] = (16, 32, 64),
) -> Chain:
    """6m + 2 layers for shortcut 2; each stage has round(2m / n) blocks, at least one, of n = `shortcut` layers."""
    style = Style(norm=norm, activation=activation, shortcut="zero-pad")
    _, m = lay_out("shortcut-resnet-{}", depth, [Layout(6, 2, "basic")])
    (n,), sizes = positive("shortcut", [shortcut], 1), positive("widths", widths, 3)
    count = max(1, round(2 * m / n))
    takes, stem_layers = input_and_stem(stem, in_channels, sizes[0], style=style)

    def make(place: Place, c_in: int, c_out: int, stride: int) -> Residual:
        return preactivated_basic(c_in, c_out, stride=stride, style=style, layers=n, shared=place[1] == 1)

    blocks = staged(make, (count,) * 3, sizes, start=sizes[0])
    chain = Chain(stem_layers, blocks, activated_head(sizes[-1], num_classes, style=style), takes=takes)
    if added := count * n - 2 * m:
        per_layer = 9 * sum(c * c for c in sizes) + (2 if norm == "batch" else 1) * sum(sizes)
        change = added * per_layer
        whole = chain.parameter_count - change
        chain.note = f"{3 * added:+d} layers and {change:+,} parameters ({change / whole:+.1%}) against shortcut 2"
    return chain


def differences(depth: int, shortcuts: Sequence[int] = (1, 2, 3, 4, 5)) -> dict[int, int]:
    """How many parameters more each shortcut depth has than shortcut 2, by building them all.

    >>> differences(20)
    {1: 0, 2: 0, 3: 0, 4: 97216, 5: -48608}
    """
    with torch.device("meta"):
        counts = {n: construct(depth, shortcut=n).parameter_count for n in {*shortcuts, 2}}
    return {n: counts[n] - counts[2] for n in shortcuts}


FAMILY = Family(
    construct=construct,
    paper="li2016",
    init="he-fan-out",
    prefixes={"shortcut-resnet": {}},
    rows={
        "shortcut-resnet-20": "Fig. 9",
        "shortcut-resnet-56": "Figs 2, 9",
        "shortcut-resnet-110": "Figs 2, 9",
        "shortcut-resnet-218": "Fig. 9",
        "shortcut-resnet-434": "Fig. 9",
    },
)
