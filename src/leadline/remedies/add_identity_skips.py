"""Identity skips around plain blocks: y = x + s f(x) wherever a block keeps the shape.

Changes: every block of two or more layers that has no skip and keeps its shape; single layers are taken in pairs.
Length two is the right one: at zero weights the Hessian of a chain of 2-shortcuts has the same condition number at any
depth, with length one it grows with depth, with three it vanishes (Li et al., Theorem 2). With s = 1 the output's
variance grows with every block (Li et al., section 4.1), so the default s depends on the number R of skips: 1 / sqrt(R)
where the blocks contain norms, which give each f(x) the same variance whatever x is; where they do not, f(x) grows with
x, and (1 + a)^R overflows where (1 + a / R)^R < e^a does not: s = 1 / (R g), at most 1, of the mean gain g of the
branches, which is 1 at He initialisation and 1/6 at PyTorch's for two layers.
Helps: deep nets without skips, whose gradients vanish or whose representations collapse (Oyedotun et al., section 4;
Zaeemzadeh et al., Theorem 1). Blocks that change the shape are left as they are.
Costs: one addition per skip, and its input is kept for as long as the block runs.
Undone: by taking the hooks away that add; names in the state dict never change.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor, nn

from leadline.core.errors import UsageError
from leadline.remedies._gain import gain
from leadline.remedies._treatment import Treatment
from leadline.remedies._wiring import is_norm
from leadline.taps.anatomy import Block
from leadline.taps.places import Place


def apply(at: Treatment, *, scale: float | None = None) -> str:
    """`scale` is s, the factor of the branches."""
    if scale is not None and not scale > 0:
        raise UsageError(f"scale={scale}: expected a positive number, the factor of the branches")
    spans = list(_spans(at))
    factor = scale or _factor(at, spans)
    for span in {(span.start, span.end): span for span in spans}.values():
        bypass = Bypass(factor, copy=at.wiring.is_overwritten(span.start))
        at.at(span.start, bypass.take)
        at.at(span.end, bypass.give)
        at.say(span.name, "now x + f(x)" if factor == 1 else f"now x + {factor:.3g} f(x)")
    return "no two layers in a row that keep the shape are without a skip"


def _factor(at: Treatment, spans: "Sequence[Span]") -> float:
    """s by the number of skips and what their branches do."""
    if not spans:
        return 1.0
    if _have_norms(at, spans):
        return float(len(spans) ** -0.5)
    gains = [gain(part for block in span.blocks for part in _parts(at, block)) for span in spans]
    return 1 / max(1.0, sum(gains))


class Bypass:
    """Remembers a block's input until its output is there."""

    def __init__(self, scale: float, *, copy: bool) -> None:
        self.scale, self.copy = scale, copy
        self._x: Tensor | None = None

    def take(self, x: Tensor) -> None:
        self._x = x.clone() if self.copy else x  # a copy where the block overwrites its input

    def give(self, y: Tensor) -> Tensor:
        x, self._x = self._x, None
        if x is None:
            raise UsageError("a skip ends before it begins: its layers are called in another order or recomputed apart")
        return x + y if self.scale == 1 else x + self.scale * y

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_x": None}


@dataclass(frozen=True)
class Span:
    """Consecutive blocks that get one skip, and the places where its two ends are met."""

    blocks: tuple[Block, ...]
    start: Place
    end: Place

    @property
    def name(self) -> str:
        return " … ".join(dict.fromkeys(block.name.split("@")[0] for block in self.blocks))


def _spans(at: Treatment) -> Iterator[Span]:
    gaps = {gap.after for gap in at.anatomy.gaps}
    blocks, index = at.anatomy.blocks, 0
    while index < len(blocks):
        one, two = blocks[index : index + 1], blocks[index : index + 2]
        if _keeps_shape(one) and _layers(at, one[0]) > 1:
            found = one
        elif len(two) == 2 and index not in gaps and _keeps_shape(two) and all(_layers(at, b) == 1 for b in two):
            found = two
        else:
            index += 1
            continue
        index += len(found)
        behind = blocks[index : index + 1] if index - 1 not in gaps else ()
        span = _span(found, behind)
        if span is None:
            at.leave(found[0].name, "its ends are met only in modules that are called several times")
        else:
            yield span


def _keeps_shape(blocks: tuple[Block, ...]) -> bool:
    return all(block.kind == "plain" for block in blocks) and blocks[0].in_shape == blocks[-1].out_shape


def _layers(at: Treatment, block: Block) -> int:
    return sum(p.ndim >= 2 for name in block.modules for p in at.model.get_submodule(name).parameters())


def _span(blocks: tuple[Block, ...], behind: tuple[Block, ...]) -> Span | None:
    """The ends of the skip; a block that is one module gets it in each of its calls."""
    start, end = blocks[0].input, blocks[-1].output
    if len(blocks) == 1 and blocks[0].modules == (start.module,) == (end.module,):
        return Span(blocks, replace(start, call=None), replace(end, call=None))
    ends = [place for place in (end, *(block.input for block in behind)) if place.call is None]
    return Span(blocks, start, ends[0]) if ends and start.call is None else None


def _have_norms(at: Treatment, spans: Iterable[Span]) -> bool:
    return any(is_norm(part) for span in spans for block in span.blocks for part in _parts(at, block))


def _parts(at: Treatment, block: Block) -> Iterator[nn.Module]:
    return (part for name in block.modules for part in at.model.get_submodule(name).modules())
