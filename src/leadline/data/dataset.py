"""Dataset and Split: what every dataset hands over, whether it lies in memory or in a tree of files."""

import hashlib
import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from leadline.data.augment import Augment, crop_flip

Statistics = tuple[tuple[float, ...], tuple[float, ...]]


@dataclass(frozen=True, eq=False)
class Cut:
    """One batch to be made: the samples this process takes, and the key all its random numbers come from.

    The whole batch has `size` samples over all processes; this one takes every `share.step`-th of them.
    """

    rows: np.ndarray[tuple[int], np.dtype[np.int64]]
    key: tuple[int, ...]
    size: int
    share: slice

    def draws(self, columns: int) -> Tensor:
        """Uniform numbers in [0, 1), one row per sample of this process: the same however the batch is shared."""
        return torch.from_numpy(np.random.default_rng(self.key).random((self.size, columns))[self.share])


class Split(Protocol):
    """The train or the test half of a dataset."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one input: (C, H, W), or (d,) for vectors."""

    @property
    def inputs(self) -> Tensor:
        """All inputs (N, *shape), uint8 pixels or floating point; an error where they do not lie in memory."""

    @property
    def targets(self) -> Tensor:
        """Class numbers (N,) int64, or values to regress on (N, outputs) in floating point."""

    def __len__(self) -> int: ...

    def statistics(self) -> Statistics:
        """Mean and standard deviation of every channel (dimension 1); pixels are counted from 0 to 1."""

    def to(self, device: torch.device, dtype: torch.dtype) -> "Split":
        """The same split with what lies in memory on the device, and values that are no pixels in `dtype`."""

    def batches(self, cuts: Iterable[Cut], augment: Augment) -> Iterator[tuple[Tensor, Tensor]]:
        """Inputs and targets of every cut in turn, not yet normalised."""


@dataclass(frozen=True, eq=False)
class InMemory:
    """A split whose samples lie in two tensors; whole batches are gathered and augmented where they lie."""

    inputs: Tensor = field(repr=False)
    targets: Tensor = field(repr=False)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.inputs.shape[1:])

    def __len__(self) -> int:
        return len(self.inputs)

    def statistics(self) -> Statistics:
        channels = self.inputs.transpose(0, 1).flatten(1)
        moments = _pixel_moments if self.inputs.dtype == torch.uint8 else _moments
        means, deviations = zip(*map(moments, channels), strict=True)
        return means, deviations

    def to(self, device: torch.device, dtype: torch.dtype) -> "InMemory":
        return InMemory(*(moved(values, device, dtype) for values in (self.inputs, self.targets)))

    def batches(self, cuts: Iterable[Cut], augment: Augment) -> Iterator[tuple[Tensor, Tensor]]:
        for cut in cuts:
            rows = torch.from_numpy(cut.rows).to(self.inputs.device)
            inputs = self.inputs.index_select(0, rows)
            if augment.kind == "crop-flip":
                inputs = crop_flip(inputs, cut.draws(3), pad=augment.pad)
            yield inputs, self.targets.index_select(0, rows)


@dataclass(frozen=True, eq=False)
class Dataset:
    """Two splits and what a model and a run must know of them.

    `classes` is the number of classes, or of values to regress on; `digest` changes when the data does.
    """

    name: str
    classes: int
    train: Split
    test: Split
    digest: str

    @property
    def shape(self) -> tuple[int, ...]:
        return self.train.shape

    @cached_property
    def _statistics(self) -> Statistics:
        return self.train.statistics()

    @property
    def mean(self) -> tuple[float, ...]:
        return self._statistics[0]

    @property
    def std(self) -> tuple[float, ...]:
        return self._statistics[1]

    def changed(self, train: Split, test: Split, **how: Any) -> "Dataset":
        """The dataset after a change to both splits that `how` describes in full."""
        return replace(self, train=train, test=test, digest=digest_of(self.digest, **how))


def moved(values: Tensor, device: torch.device, dtype: torch.dtype) -> Tensor:
    """Values on the device: pixels and class numbers as they are, others in `dtype`."""
    return (values.to(dtype) if values.is_floating_point() else values).to(device, non_blocking=True)


def digest_of(what: str, **how: Any) -> str:
    """The sha256 of a name and the plain values that decide the data.

    >>> digest_of("random", seed=0) == digest_of("random", seed=1)
    False
    """
    return hashlib.sha256(json.dumps([what, how], sort_keys=True).encode()).hexdigest()


def _pixel_moments(channel: Tensor) -> tuple[float, float]:
    counts = torch.bincount(channel, minlength=256).double()
    levels = torch.arange(256, dtype=torch.float64, device=channel.device) / 255
    mean = float(counts @ levels / counts.sum())
    return mean, math.sqrt(float(counts @ (levels - mean).square() / counts.sum())) or 1.0


def _moments(channel: Tensor) -> tuple[float, float]:
    values = channel.double()
    return float(values.mean()), float(values.std(correction=0)) or 1.0
