"""Networks in the original order of He et al. 2015: stem, stages of blocks activated after the addition, head."""

from collections.abc import Callable, Sequence

from torch import nn

from leadline.core.errors import UsageError
from leadline.models import stems
from leadline.models.chain import Chain
from leadline.models.heads import pooled_linear
from leadline.models.layers import Style, positive
from leadline.models.stages import Layout, Place, lay_out, staged

BASIC = Layout(6, 2, "basic")
BOTTLENECK = Layout(9, 2, "bottleneck")
EXPANSION = {"basic": 1, "bottleneck": 4}
IMAGENET = {
    18: ("basic", (2, 2, 2, 2)),
    34: ("basic", (3, 4, 6, 3)),
    50: ("bottleneck", (3, 4, 6, 3)),
    101: ("bottleneck", (3, 4, 23, 3)),
    152: ("bottleneck", (3, 8, 36, 3)),
}


def postactivation(
    make: Callable[[Place, int, int, int], nn.Module],
    counts: Sequence[int],
    *,
    block: str,
    widths: Sequence[int],
    stem: str,
    in_channels: int | None,
    num_classes: int | None,
    style: Style,
) -> Chain:
    """Put the parts together; make((stage, block), c_in, c_out, stride) builds one of `block` kind."""
    takes = stems.takes(stem, in_channels)
    first = stems.activated(stem, takes.channels, widths[0], style=style)
    outputs = [width * EXPANSION[block] for width in widths]
    blocks = staged(make, counts, outputs, start=widths[0])
    classes = (1000 if stem == "imagenet" else 10) if num_classes is None else num_classes
    return Chain(first, blocks, pooled_linear(outputs[-1], classes), takes=takes)


def counted(
    label: str, depth: int, layouts: Sequence[Layout], *, stem: str, block: str | None
) -> tuple[str, tuple[int, ...]]:
    """The block and the blocks per stage of a depth: three equal stages, or the ImageNet table."""
    if stem != "imagenet":
        kind, n = lay_out(label, depth, layouts, block=block)
        return kind, (n, n, n)
    table = {d: (kind, c) for d, (kind, c) in IMAGENET.items() if kind in {layout.block for layout in layouts}}
    if depth not in table:
        choices = ", ".join(label.format(d) for d in table)
        raise UsageError(f"no {label.format(depth)} with stem='imagenet'; expected one of {choices}")
    kind, counts = table[depth]
    if block not in (None, kind):
        raise UsageError(f"{label.format(depth)} with stem='imagenet' has block={kind!r}; got block={block!r}")
    return kind, counts


def checked_widths(widths: Sequence[int] | None, *, stem: str) -> tuple[int, ...]:
    """16-32-64 on small images and 64-128-256-512 on ImageNet, or the given ones if they are as many."""
    usual = (64, 128, 256, 512) if stem == "imagenet" else (16, 32, 64)
    return usual if widths is None else positive("widths", widths, len(usual))
