"""resnest-fc and resnest-conv: the vector-valued ResNEst of Chen et al., eqs. (1) and (2), and its A-ResNEst, eq. (4).

One stage: an expansion W_0, L blocks x_i = x_{i-1} + W_i G_i(x_{i-1}) with G_i one layer and an activation, and
W_{L+1}. On images G_i is a 3x3 convolution, the W_i are 1x1, and W_{L+1} reads the mean over pixels.
"""

from collections.abc import Sequence

from leadline.core.errors import unknown
from leadline.models.chain import Chain, Input
from leadline.models.estimators import resnest
from leadline.models.family import Family
from leadline.models.layers import positive
from leadline.models.linear_maps import activated_layer
from leadline.models.stages import Layout, lay_out


def construct(
    depth: int,
    *,
    in_channels: int | None = None,
    num_classes: int = 10,
    width: int | None = None,
    features: int | Sequence[int] | None = None,
    block: str = "bottleneck",
    activation: str = "relu",
    images: bool = False,
    augmented: bool = False,
) -> Chain:
    """Depth 2L + 2. `features` are the K_i (one number or L), `width` is M.

    Bottleneck blocks have K_i = 4 and M = K_0 + sum K_i by default, basic ones K_i = M = 16.
    """
    name = f"{'a-' * augmented}resnest-{'conv' if images else 'fc'}-{{}}"
    if block not in ("bottleneck", "basic"):
        raise unknown("block", block, ("bottleneck", "basic"))
    _, blocks = lay_out(name, depth, [Layout(2, 2, block)])
    takes = Input(channels=in_channels or 3, size=32) if images else Input(channels=in_channels or 10)
    usual = 4 if block == "bottleneck" else width or 16
    given = usual if features is None else features
    sizes = positive("features", [given] * blocks if isinstance(given, int) else given, blocks)
    total = takes.channels + sum(sizes) if block == "bottleneck" else 16
    (m,) = positive("width", [total if width is None else width], 1)
    functions = [activated_layer(m, size, activation=activation, takes=takes) for size in sizes]
    model = resnest(functions, sizes, width=m, outputs=positive("num_classes", [num_classes], 1)[0], takes=takes)
    return model.augmented() if augmented else model


FAMILY = Family(
    construct=construct,
    paper="chen2021",
    init="pytorch",
    prefixes={
        "resnest-fc": {"images": False, "augmented": False},
        "resnest-conv": {"images": True, "augmented": False},
        "a-resnest-fc": {"images": False, "augmented": True},
        "a-resnest-conv": {"images": True, "augmented": True},
    },
    rows={
        "resnest-fc-8": "eqs. (1), (2); Fig. 2",
        "resnest-conv-8": "eqs. (1), (2); Fig. 2",
        "a-resnest-fc-8": "eq. (4); Fig. 1",
        "a-resnest-conv-8": "eq. (4); Fig. 1",
    },
)
