"""Batches: each a pure function of seed, epoch and position, so that a run resumes anywhere without any RNG state."""

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from leadline.core.errors import UsageError
from leadline.data.augment import Augment, Kind, Pad
from leadline.data.dataset import Cut, Split, moved

_ORDER, _AUGMENT = 1, 2


@dataclass(frozen=True, eq=False)
class Batches:
    """Cuts a split into batches of `batch_size` samples, of which each of `world_size` processes takes its share.

    The order of epoch e is a permutation drawn from (seed, e); the augmentation of its k-th batch is drawn from
    (seed, e, k). Torch's global generator is never touched, and the shares of all processes together are exactly
    the batch that one process would have seen. Inputs leave as (x - mean) / std in `dtype`, pixels counted from 0
    to 1. `drop_last` leaves out the incomplete batch at the end of an epoch; without it nothing is left out and a
    batch larger than the data is the data. `shuffle=False` keeps the order of the split.

    >>> from leadline.data import load
    >>> batches = Batches(load("digits").train, batch_size=100, seed=3)
    >>> len(batches)
    14
    >>> inputs, targets = list(batches.epoch(0))[5]
    >>> again, _ = next(batches.epoch(0, start=5))
    >>> inputs.shape, torch.equal(inputs, again)
    (torch.Size([100, 1, 8, 8]), True)
    """

    split: Split
    _: KW_ONLY
    batch_size: int
    seed: int = 0
    augment: Kind = "none"
    pad: Pad = "zero"
    normalise: tuple[Sequence[float], Sequence[float]] | None = None
    device: str | torch.device = "cpu"
    dtype: torch.dtype = torch.float32
    channels_last: bool = False
    shuffle: bool = True
    drop_last: bool = True
    rank: int = 0
    world_size: int = 1

    def __post_init__(self) -> None:
        if self.batch_size < 1 or self.seed < 0:
            raise UsageError(
                f"batch size must be at least 1 and seed at least 0; got {self.batch_size} and {self.seed}"
            )
        if self.drop_last and self.batch_size > len(self.split):
            raise UsageError(f"batch size {self.batch_size} is larger than the data: {len(self.split)} samples")
        if self.batch_size % self.world_size or not 0 <= self.rank < self.world_size:
            raise UsageError(
                f"batch size {self.batch_size} cannot be shared by {self.world_size} processes (rank {self.rank})"
            )
        Augment(self.augment, self.pad).check(self.split.shape)

    def __len__(self) -> int:
        """The number of batches in an epoch."""
        whole, rest = divmod(len(self.split), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    def epoch(self, e: int, start: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
        """Inputs and targets of epoch `e`, from its batch number `start` on."""
        device = torch.device(self.device)
        for inputs, targets in self._split.batches(self._cuts(e, start), Augment(self.augment, self.pad)):
            yield self._normalised(moved(inputs, device, self.dtype)), moved(targets, device, self.dtype)

    @cached_property
    def _split(self) -> Split:
        return self.split.to(torch.device(self.device), self.dtype)

    def _cuts(self, e: int, start: int) -> Iterator[Cut]:
        count = len(self.split)
        order = np.random.default_rng((_ORDER, self.seed, e)).permutation(count) if self.shuffle else np.arange(count)
        share = slice(self.rank, None, self.world_size)
        for k in range(start, len(self)):
            rows = order[k * self.batch_size : (k + 1) * self.batch_size]
            yield Cut(rows[share], (_AUGMENT, self.seed, e, k), len(rows), share)

    @cached_property
    def _affine(self) -> tuple[Tensor, Tensor]:
        """Scale and shift of every channel: (x - mean) / std = x * scale + shift."""
        mean, std = self.normalise or ((0.0,), (1.0,))
        column = (-1,) + (1,) * (len(self.split.shape) - 1)
        centre, spread = (torch.tensor(tuple(v), dtype=torch.float64).view(column) for v in (mean, std))
        device = torch.device(self.device)
        return moved(1 / spread, device, self.dtype), moved(-centre / spread, device, self.dtype)

    def _normalised(self, inputs: Tensor) -> Tensor:
        scale, shift = self._affine
        unit = 255 if inputs.dtype == torch.uint8 else 1
        values = inputs.to(self.dtype).mul(scale / unit).add_(shift)
        return values.contiguous(memory_format=torch.channels_last) if self.channels_last else values
