"""Stages: how many blocks a depth means, and blocks in a row whose image halves from stage to stage."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from torch import nn

from leadline.core.errors import UsageError, unknown

Block = TypeVar("Block", bound=nn.Module)
Place = tuple[int, int]  # (stage, block in it), from one


@dataclass(frozen=True)
class Layout:
    """Networks of depth step * n + extra, n blocks in each stage; `block` names what they are made of."""

    step: int
    extra: int
    block: str

    def blocks(self, depth: int) -> int:
        """n if the depth is step * n + extra for some n >= 1, else 0."""
        n, rest = divmod(depth - self.extra, self.step)
        return 0 if rest else max(n, 0)

    def near(self, depth: int) -> list[int]:
        """The valid depths around one that is not."""
        n = max((depth - self.extra) // self.step, 1)
        return [self.step * k + self.extra for k in (n, n + 1)]

    def __str__(self) -> str:
        return f"{self.step}n+{self.extra} ({self.block})"


def lay_out(label: str, depth: int, layouts: Sequence[Layout], *, block: str | None = None) -> tuple[str, int]:
    """The first layout (or the one for `block`) that has this depth, as the block's name and the blocks per stage."""
    choices = [layout for layout in layouts if block in (None, layout.block)]
    if not choices:
        raise unknown("block", str(block), [layout.block for layout in layouts])
    for layout in choices:
        if n := layout.blocks(depth):
            return layout.block, n
    near = sorted({value for layout in choices for value in layout.near(depth)}, key=lambda value: abs(value - depth))
    names = ", ".join(label.format(value) for value in sorted(near[:4]))
    rules = " or ".join(str(layout) for layout in choices)
    raise UsageError(f"no {label.format(depth)}: the depth must be {rules}; nearest: {names}")


def staged(
    make: Callable[[Place, int, int, int], Block], counts: Sequence[int], outputs: Sequence[int], *, start: int
) -> dict[str, Block]:
    """Blocks `stage{s}_block{b}` from make((s, b), c_in, c_out, stride); each stage but the first starts with stride 2.

    `outputs` are the channels after each stage, `start` those before the first.
    """
    blocks: dict[str, Block] = {}
    channels = start
    for stage, (count, c_out) in enumerate(zip(counts, outputs, strict=True), start=1):
        for block in range(1, count + 1):
            stride = 2 if stage > 1 and block == 1 else 1
            blocks[f"stage{stage}_block{block}"] = make((stage, block), channels, c_out, stride)
            channels = c_out
    return blocks
