"""Seeding of every generator, what a checkpoint keeps of them, and a forked generator to lend."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor


def seed_all(seed: int, process: int = 0) -> None:
    """Seeds Python, NumPy and torch (all devices); each process but the first gets numbers of its own."""
    if process:
        seed = int(np.random.SeedSequence([seed, process]).generate_state(1, np.uint64)[0] >> 1)
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002 - third-party layers draw from the global generator
    torch.manual_seed(seed)


def capture() -> dict[str, Tensor]:
    """The state of all global generators, as tensors: what dropout and its like will draw next."""
    _, words, gauss = random.getstate()
    _, keys, position, has_gauss, cached = np.random.get_state(legacy=True)  # noqa: NPY002
    state = {
        "cpu": torch.get_rng_state(),
        "python": torch.tensor(words, dtype=torch.int64),
        "python.gauss": torch.tensor(float("nan") if gauss is None else gauss, dtype=torch.float64),
        "numpy": torch.tensor([*map(int, keys), int(position), int(has_gauss)], dtype=torch.int64),
        "numpy.gauss": torch.tensor(float(cached), dtype=torch.float64),
    }
    if torch.cuda.is_available():
        state |= {f"cuda:{index}": value for index, value in enumerate(torch.cuda.get_rng_state_all())}
    return state


def restore(state: dict[str, Tensor]) -> None:
    """Puts the generators back where `capture` found them; a device that is gone is passed over."""
    torch.set_rng_state(state["cpu"])
    gauss = float(state["python.gauss"])
    random.setstate((3, tuple(state["python"].tolist()), None if gauss != gauss else gauss))
    *keys, position, has_gauss = state["numpy"].tolist()
    array = np.array(keys, dtype=np.uint32)
    np.random.set_state(("MT19937", array, position, has_gauss, float(state["numpy.gauss"])))  # noqa: NPY002
    for index in range(torch.cuda.device_count()):
        if (value := state.get(f"cuda:{index}")) is not None:
            torch.cuda.set_rng_state(value, index)


def forked(seed: int, *purpose: int) -> torch.Generator:
    """A generator of its own for probes and the like: drawing from it leaves training's numbers alone."""
    entropy = np.random.SeedSequence([seed, *purpose]).generate_state(2, np.uint32)
    return torch.Generator().manual_seed(int(entropy[0]) << 31 ^ int(entropy[1]))


@contextmanager
def untouched() -> Iterator[None]:
    """Whatever happens inside draws from the global generators without moving them for the outside."""
    state = capture()
    try:
        yield
    finally:
        restore(state)
