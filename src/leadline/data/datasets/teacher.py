"""A linear teacher: whitened inputs of any width and targets y = T x + noise, the data that linear theory speaks of.

Li et al., section 4.1, speak of whitened inputs and one-hot outputs (`labels=True`, and `vectors=True` of `load` for
the vectors).
"""

import torch
from torch import Tensor

from leadline.core.errors import UsageError
from leadline.data.dataset import Dataset, InMemory, digest_of
from leadline.data.place import Place
from leadline.data.whiten import fit


def load(
    _place: Place,
    *,
    width: int = 10,
    outputs: int | None = None,
    noise: float = 0.0,
    labels: bool = False,
    whitened: bool = True,
    train: int = 1000,
    test: int = 200,
    seed: int = 0,
) -> Dataset:
    """x ~ N(0, I) of `width` entries, T (outputs, width) with entries of N(0, 1 / width), y = T x + noise * N(0, I).

    `whitened` rotates and scales x so that over the training inputs its mean is 0 and its covariance is exactly I;
    `labels` replaces y by the number of its largest entry. `outputs` is `width` unless given.
    """
    rows = width if outputs is None else outputs
    if min(width, rows, train, test) < 1 or noise < 0:
        raise UsageError(f"teacher: sizes must be at least 1 and noise at least 0; got {width=}, {outputs=}, {noise=}")
    if whitened and train <= width:
        raise UsageError(f"teacher: whitening {width} dimensions needs more than {width} training inputs; got {train=}")
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    x = normal(train + test, width)
    x = fit(x[:train], width)(x) if whitened else x
    y = x @ (normal(rows, width) / width**0.5).T + noise * normal(train + test, rows)
    targets = y.argmax(1) if labels else y
    first, second = (InMemory(x[part], targets[part]) for part in (slice(train), slice(train, None)))
    chosen = {"width": width, "outputs": rows, "noise": noise, "labels": labels, "whitened": whitened}
    return Dataset("teacher", rows, first, second, digest_of("teacher", train=train, test=test, seed=seed, **chosen))
