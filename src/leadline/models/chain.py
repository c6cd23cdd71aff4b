"""Chain: a network as a stem, named blocks and a head; every boundary between two blocks has a name."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from leadline.core.errors import UsageError
from leadline.core.spec import Spec
from leadline.models.checkpointing import recomputed
from leadline.models.layers import Transition, sequence


@dataclass(frozen=True, kw_only=True)
class Input:
    """What a network takes: vectors (`size` None) or square images of `size`, accepted from `smallest` to `largest`."""

    channels: int
    size: int | None = None
    smallest: int = 1
    largest: int | None = None
    hint: str = ""

    @property
    def shape(self) -> tuple[int, ...]:
        """One example without the batch axis."""
        return (self.channels,) if self.size is None else (self.channels, self.size, self.size)

    def check(self, x: Tensor) -> None:
        """Refuse data of another kind in one line, before a convolution fails deep inside."""
        axes = len(self.shape)
        fits = x.dim() == axes + 1 and x.shape[1] == self.channels
        if fits and self.size is not None:
            fits = min(x.shape[2:]) >= self.smallest and max(x.shape[2:]) <= (self.largest or math.inf)
        if not fits:
            raise UsageError(f"the network takes {self}; got a batch of shape {tuple(x.shape)}{self.hint}")

    def __str__(self) -> str:
        if self.size is None:
            return f"vectors of width {self.channels}"
        upper = f"{self.smallest} to {self.largest}" if self.largest else f"{self.smallest} or more"
        return f"images of {self.channels} channel{'s' * (self.channels != 1)} and {upper} pixels a side"


@dataclass(frozen=True)
class Source:
    """The paper a network belongs to, and the tables and figures it appears in."""

    paper: str
    row: str = ""


def in_a_row(modules: Sequence[nn.Module], x: Tensor) -> Tensor:
    """Each module's output is the next one's input."""
    for module in modules:
        x = module(x)
    return x


class Chain(nn.Module):
    """head(blocks(stem(x))): x_0 is the stem's output, x_l that of block l; `boundary_names` are their modules' paths.

    `checkpoint_blocks` trades time for memory: while it is set, the inside of the blocks is not kept but computed
    again in the backward pass. A number k is how many blocks are recomputed together; True takes k = sqrt(L) / 3: the
    inside of a block is about three times its boundary and the first third of the blocks holds most, so that
    (L / 3) / k + 3 k boundaries are kept at once. Batch-norm statistics are updated once, random numbers repeat, and
    no result changes.
    """

    spec: Spec | None = None
    source: Source | None = None
    init: str | None = None
    counts_skips = False
    note = ""

    def __init__(self, stem: nn.Module, blocks: Mapping[str, nn.Module], head: nn.Module, *, takes: Input) -> None:
        super().__init__()
        self.stem = stem
        self.blocks = sequence(**blocks)
        self.head = head
        self.takes = takes
        self.checkpoint_blocks: bool | int = False

    def forward(self, x: Tensor) -> Tensor:
        self.takes.check(x)
        x = self.stem(x)
        for step in self.steps(in_a_row):
            x = step(x)
        out: Tensor = self.head(x)
        return out

    def steps(self, run: Callable[[Sequence[nn.Module], Tensor], Any]) -> Iterator[Callable[[Tensor], Any]]:
        """run(blocks, .) for all blocks at once, or in recomputed groups while `checkpoint_blocks` is set."""
        blocks = list(self.blocks)
        if not (self.checkpoint_blocks and torch.is_grad_enabled()):
            yield partial(run, blocks)
            return
        usual = max(1, round(math.sqrt(len(blocks)) / 3))
        length = usual if self.checkpoint_blocks is True else self.checkpoint_blocks
        if length < 1:
            raise UsageError(f"checkpoint_blocks={self.checkpoint_blocks}: expected True, False or a positive number")
        for start in range(0, len(blocks), length):
            yield partial(recomputed, run, blocks[start : start + length])

    @property
    def block_names(self) -> tuple[str, ...]:
        """The names of the blocks in order."""
        return tuple(name for name, _ in self.blocks.named_children())

    @property
    def boundary_names(self) -> tuple[str, ...]:
        """The paths of the modules whose outputs are x_0, ..., x_L."""
        return ("stem", *(f"blocks.{name}" for name in self.block_names))

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of one example the network is meant for."""
        return self.takes.shape

    @property
    def depth(self) -> int:
        """Convolutions and linear layers from input to output; those in skips only where the family counts them."""
        return len(self.weighted_layers())

    def weighted_layers(self) -> Sequence[str]:
        """The paths of the layers that `depth` counts."""
        return [
            name
            for name, module in self.named_modules()
            if isinstance(module, nn.Conv2d | nn.Linear) and (self.counts_skips or "skip" not in name.split("."))
        ]

    @property
    def parameter_count(self) -> int:
        """How many numbers are trained."""
        return sum(parameter.numel() for parameter in self.parameters())

    def extra_repr(self) -> str:
        facts = (str(self.spec or ""), f"depth {self.depth}", f"{self.parameter_count:,} parameters", self.note)
        return ", ".join(filter(None, facts))

    def transitions(self) -> dict[str, nn.Conv2d]:
        """The convolutions that are to be kept norm-preserving (conv* of Zaeemzadeh et al.), by path."""
        return {name: module for name, module in self.named_modules() if isinstance(module, Transition)}
