"""What a range is made of: extremes over all values; percentiles and a histogram over an even sample of them."""

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from leadline.probes import Reading
from leadline.probes._layers import Layer
from leadline.probes._readings import missing, profile
from leadline.taps.reductions import Array

SAMPLE = 16_384
PERCENTILES = (1, 5, 25, 50, 75, 95, 99)
BINS = 16


def sketch(tensor: Tensor) -> Tensor:
    """min and max of all values, then at most SAMPLE of them, spread evenly over the tensor's memory."""
    if not tensor.numel():
        return tensor.detach().reshape(-1)
    in_memory = sorted(range(tensor.ndim), key=tensor.stride, reverse=True)
    flat = tensor.detach().permute(in_memory).reshape(-1)
    extremes = torch.stack(flat.aminmax())
    return torch.cat([extremes, flat if len(flat) <= SAMPLE else flat[_places(len(flat), flat.device)]])


def _places(count: int, device: torch.device) -> Tensor:
    """i s mod n with s near n over the golden ratio and prime to n: no two alike, no rhythm with rows or channels."""
    step = round(count * (math.sqrt(5) - 1) / 2)
    while math.gcd(step, count) > 1:
        step += 1
    return torch.arange(SAMPLE, device=device) * step % count


def merged(sketches: Sequence[Array]) -> Array:
    """One sketch of what several were taken from."""
    full = [piece for piece in sketches if len(piece)]
    if not full:
        return np.empty(0)
    low, high = (np.array([piece[k] for piece in full]) for k in (0, 1))
    return np.concatenate([[low.min(), high.max()], *(piece[2:] for piece in full)])


def fetched(parts: Sequence[Tensor]) -> list[Array]:
    """Small tensors as flat float64 arrays, in one transfer."""
    if not parts:
        return []
    flat = torch.cat([part.detach().reshape(-1).to(parts[0].device) for part in parts]).cpu().double().numpy()
    return np.split(flat, np.cumsum([part.numel() for part in parts])[:-1])


def of_weights(layers: Sequence[Layer], measure: Callable[[Tensor], Tensor]) -> list[Array | str]:
    """measure(W_i) of every layer's weight, or why there is none."""
    known = iter(fetched([measure(layer.weight) for layer in layers if not layer.why]))
    return [layer.why or next(known) for layer in layers]


def readings(sketches: Sequence[Array | str], *, empty: str) -> Iterator[Reading]:
    """Extremes, percentiles, and the share of the values in each of BINS equal parts of [min, max]."""
    if not sketches:
        yield missing("min", empty)
        return
    rows = [reason if isinstance(reason := _row(each), str) else list(reason) for each in sketches]
    names = ("min", "max", *(f"p{k:02}" for k in PERCENTILES), *(f"histogram/{k:02}" for k in range(BINS)))
    for column, name in enumerate(names):
        yield profile(name, [row if isinstance(row, str) else row[column] for row in rows])


def _row(values: Array | str) -> Array | str:
    if isinstance(values, str):
        return values
    if not len(values):
        return "it has no values"
    if not np.isfinite(values).all():
        return "some of its values are " + ("not numbers" if np.isnan(values).any() else "infinite")
    low, high, sample = values[0], values[1], values[2:]
    shares = np.histogram(sample / 2, BINS, (low / 2, high / 2))[0] / len(sample)
    return np.array([low, high, *np.percentile(sample, PERCENTILES), *shares])
