"""Noise with labels that mean nothing: normal inputs of any shape, for trying a network without any data."""

import math
from collections.abc import Sequence

import torch

from leadline.core.errors import UsageError
from leadline.data.dataset import Dataset, InMemory, digest_of
from leadline.data.place import Place


def load(
    _place: Place,
    *,
    shape: int | Sequence[int] = (3, 32, 32),
    classes: int = 10,
    train: int = 1024,
    test: int = 256,
    seed: int = 0,
) -> Dataset:
    """Inputs x ~ N(0, I) of one `shape` (a number is the width of a vector) and labels drawn evenly from `classes`."""
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    if not sizes or min(*sizes, classes, train, test) < 1:
        raise UsageError(f"random: sizes must be at least 1; got {shape=}, {classes=}, {train=}, {test=}")
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(train + test, math.prod(sizes), generator=generator).view(-1, *sizes)
    labels = torch.randint(classes, (train + test,), generator=generator)
    first, second = (InMemory(inputs[part], labels[part]) for part in (slice(train), slice(train, None)))
    digest = digest_of("random", shape=sizes, classes=classes, train=train, test=test, seed=seed)
    return Dataset("random", classes, first, second, digest)
