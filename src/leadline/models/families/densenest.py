"""densenest-fc and densenest-conv: x_i = [x_{i-1}, Q_i(x_{i-1})], y = W_{L+1} x_L (Chen et al., eqs. (8) and (9)).

Q_i is one layer and an activation, a 3x3 convolution on images, where W_{L+1} reads the mean over pixels.
`model.to_resnest()` is the wide ResNEst it equals (Prop. 4).
"""

from collections.abc import Sequence
from itertools import accumulate

from leadline.models.chain import Chain, Input
from leadline.models.densenest import DenseNEst
from leadline.models.family import Family
from leadline.models.layers import positive
from leadline.models.linear_maps import activated_layer
from leadline.models.stages import Layout, lay_out


def construct(
    depth: int,
    *,
    in_channels: int | None = None,
    num_classes: int = 10,
    features: int | Sequence[int] = 4,
    activation: str = "relu",
    images: bool = False,
) -> Chain:
    """Depth L + 1; `features` are the D_i, one number or L."""
    _, blocks = lay_out(f"densenest-{'conv' if images else 'fc'}-{{}}", depth, [Layout(1, 1, "dense")])
    takes = Input(channels=in_channels or 3, size=32) if images else Input(channels=in_channels or 10)
    sizes = positive("features", [features] * blocks if isinstance(features, int) else features, blocks)
    widths = accumulate(sizes[:-1], initial=takes.channels)
    functions = [activated_layer(m, d, activation=activation, takes=takes) for m, d in zip(widths, sizes, strict=True)]
    return DenseNEst(functions, sizes, outputs=positive("num_classes", [num_classes], 1)[0], takes=takes)


FAMILY = Family(
    construct=construct,
    paper="chen2021",
    init="pytorch",
    prefixes={"densenest-fc": {"images": False}, "densenest-conv": {"images": True}},
    rows={"densenest-fc-5": "eqs. (8), (9); Prop. 4", "densenest-conv-5": "eqs. (8), (9); Prop. 4"},
)
