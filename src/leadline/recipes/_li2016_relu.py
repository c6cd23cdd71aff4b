"""The trainings behind Fig. 8 and the right half of Fig. 3 of Li et al.: nets with ReLUs in mid positions."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from leadline.core.config import Scale
from leadline.core.study import Study
from leadline.recipes import Made
from leadline.recipes._li2016_linear import COMPARED, DATA, rates, scanned

MODULE = "leadline.recipes._relu_nets"
DEPTHS: dict[Scale, tuple[int, ...]] = {"smoke": (4, 8), "laptop": (4, 8, 16, 32, 64), "paper": (4, 8, 16, 32, 64)}
SAMPLES: dict[Scale, int] = {"smoke": 300, "laptop": 1000, "paper": 60_000}
EPOCHS: dict[Scale, int] = {"smoke": 60, "laptop": 1000, "paper": 1000}
SEEDS: dict[Scale, int] = {"smoke": 2, "laptop": 3, "paper": 10}
POINTS = 50
"""How often losses and norms are read in the course of a training."""
SECONDS_OF_SAMPLE = 2.4e-8
"""Of one layer of one net for one sample and epoch, forwards and backwards; measured on one core."""


def tried(scale: Scale) -> tuple[float, ...]:
    """The rates among which the best one is looked for."""
    return scanned(scale) if scale == "paper" else rates(-3, 1, 1 if scale == "smoke" else 2)


def trainings(scale: Scale, nets: Sequence[str] = COMPARED) -> Iterator[Study]:
    """Every net at every depth from every start, all rates in one study."""
    epochs, samples, among = EPOCHS[scale], SAMPLES[scale], tried(scale)
    fixed = {"data": DATA[scale], "samples": samples, "rates": among, "epochs": epochs, "every": epochs // POINTS}
    for net in nets:
        for depth in DEPTHS[scale]:
            seconds = SECONDS_OF_SAMPLE * samples * depth * len(among) * epochs + 0.3
            for seed in range(SEEDS[scale]):
                yield Study.of(f"{MODULE}:trainings", seconds=seconds, net=net, depth=depth, seed=seed, **fixed)


def by_shape(made: Sequence[Made]) -> dict[tuple[str, int], list[Made]]:
    """The runs of each net and depth, by seed."""
    found: dict[tuple[str, int], list[Made]] = {}
    for one in sorted(made, key=lambda one: one.seed):
        found.setdefault((one.args["net"], one.args["depth"]), []).append(one)
    return found


def final_losses(made: Sequence[Made]) -> NDArray[np.float64]:
    """The losses at the end, (runs, rates)."""
    return np.array([one.profile("loss") for one in made])
