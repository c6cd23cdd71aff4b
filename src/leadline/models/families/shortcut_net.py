"""shortcut-net: fully connected n-shortcut networks, linear or with activations (Li et al., Definitions 1 and 2).

y = prod_r (prod_l W^{r,l} + I) x for R units of n square matrices without bias, activations pre, mid and post on the
branch. The default start is the paper's zero: 0.01 x Xavier. `-plain` takes the skips away and keeps the activations
at the same positions (appendix B); `-equation3` is the network of eq. (3).
"""

from leadline.core.errors import UsageError
from leadline.models.blocks.unit import unit
from leadline.models.chain import Chain, Input
from leadline.models.family import Family
from leadline.models.layers import positive, sequence
from leadline.models.stages import Layout, lay_out


def construct(
    depth: int | None = None,
    *,
    shortcut: int = 2,
    units: int | None = None,
    width: int = 10,
    pre: str = "identity",
    mid: str = "identity",
    post: str = "identity",
    bias: bool = False,
    plain: bool = False,
) -> Chain:
    """`units` (default 8) of `shortcut` = n layers each; a depth in the name means depth / n units."""
    n, size = positive("(shortcut, width)", (shortcut, width), 2)
    if depth is not None:
        if units is not None:
            raise UsageError(f"shortcut-net-{depth} has {depth} / {n} units; got units={units} as well")
        _, units = lay_out("shortcut-net-{}", depth, [Layout(n, 0, f"shortcut={n}")])
    (count,) = positive("units", [8 if units is None else units], 1)
    blocks = {
        f"unit{r}": unit(size, layers=n, pre=pre, mid=mid, post=post, bias=bias, plain=plain)
        for r in range(1, count + 1)
    }
    return Chain(sequence(), blocks, sequence(), takes=Input(channels=size))


FAMILY = Family(
    construct=construct,
    paper="li2016",
    init="near-zero",
    prefixes={"shortcut-net": {}},
    rows={
        "shortcut-net": "Figs 3-8",
        "shortcut-net-16": "Figs 4-8",
        "shortcut-net-16-relu": "Fig. 8",
        "shortcut-net-16-plain": "Figs 4-7",
        "shortcut-net-16-plain-relu": "Fig. 8",
        "shortcut-net-16-equation3": "Theorem 1",
    },
    variants={
        "plain": {"plain": True, "init": "xavier"},
        "relu": {"mid": "relu"},
        "equation3": {"shortcut": 2, "mid": "relu", "bias": True},
    },
    numbers=(0, 1),
)
