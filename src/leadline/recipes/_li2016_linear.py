"""What the recipes on linear nets share: the data of every scale, learning rates, names in figures, units."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from leadline.core.config import Scale
from leadline.core.study import Study

MODULE = "leadline.recipes._linear_nets"
DATA: dict[Scale, str] = {"smoke": "digits", "laptop": "mnist", "paper": "mnist"}
EPOCHS: dict[Scale, int] = {"smoke": 100, "laptop": 1000, "paper": 1000}
NAMES = {
    "xavier": "Xavier",
    "orthogonal": "orthogonal",
    "2-shortcut": "2-shortcut, zero",
    "1-shortcut": "1-shortcut, zero",
    "3-shortcut": "3-shortcut, zero",
}
COMPARED = ("xavier", "orthogonal", "2-shortcut")
# multiplications of a spectrum grow with the cube of depth d^2; seconds measured on one core
SECONDS_OF_SPECTRUM = 0.17 / 16**3
SECONDS_OF_NET_LAYER = 9e-7
SECONDS_OF_LONE_LAYER = 4e-5


def rates(low: float, high: float, per_decade: int) -> tuple[float, ...]:
    """Learning rates at log scale from 10^low to 10^high, both among them.

    >>> rates(-1, 0, 2)
    (0.1, 0.316228, 1.0)
    """
    count = round((high - low) * per_decade) + 1
    return tuple(float(f"{10**power:.6g}") for power in np.linspace(low, high, count))


def scanned(scale: Scale) -> tuple[float, ...]:
    """The rates among which the best one is looked for."""
    return rates(-4, 1, 2 if scale == "smoke" else 4)


def study(name: str, scale: Scale, *, seconds: float, **args: Any) -> Study:
    """A study of `_linear_nets` on the data of a scale."""
    return Study.of(f"{MODULE}:{name}", seconds=seconds, data=DATA[scale], **args)


def names(nets: Sequence[str]) -> dict[str, str]:
    return {net: NAMES[net] for net in nets}
