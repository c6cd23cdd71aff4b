"""The trainings behind Figs 2 and 9 of Li et al.: pre-activation networks with skips over n convolutions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from leadline.core import presets
from leadline.core.config import RunConfig, Scale
from leadline.recipes import Made

PREFIX = "shortcut-resnet"
DROPS = (81 / 164, 122 / 164)
"""Where in a training the rate falls to a tenth, once and again."""
READINGS = 20
"""How often norms are read in a short training."""


@dataclass(frozen=True, kw_only=True)
class Size:
    """Depths with the number of starts for shortcut 2 and for the others, data, and the length of a training."""

    seeds: Mapping[int, tuple[int, int]]
    data: Mapping[str, Any]
    training: Mapping[str, Any]
    samples: int
    model: Mapping[str, Any] = field(default_factory=dict)

    @property
    def per_epoch(self) -> int:
        return self.samples // int(self.data["batch_size"])


SIZES: dict[Scale, Size] = {
    "smoke": Size(
        seeds={8: (1, 1), 20: (1, 1)},
        data={"name": "digits", "args": {"train": 256, "test": 128}, "batch_size": 32, "augment": "none"},
        training={"epochs": 2},
        samples=256,
        model={"widths": [4, 8, 16]},
    ),
    "laptop": Size(
        seeds={20: (2, 2), 56: (2, 1), 110: (2, 1)},
        data={"name": "cifar10", "args": {"train": 3200, "test": 1000, "pool": 2}, "batch_size": 64},
        training={"epochs": 4, "evaluate_every": 4, "precision": "bf16"},
        samples=3200,
    ),
    "paper": Size(
        seeds=dict.fromkeys((20, 56, 110, 218, 434), (10, 10)),
        data={"name": "cifar10", "batch_size": 128},
        training={"epochs": 164},
        samples=50_000,
    ),
}


def training(scale: Scale, depth: int, shortcut: int, seed: int, *, epochs: int | None = None) -> RunConfig:
    """A training of a scale, or of so many `epochs` with the rate falling where it does anyway."""
    size, preset = SIZES[scale], presets.named("li2016")
    planned = int(size.training["epochs"])
    every = 5 * size.per_epoch if scale == "paper" else max(1, planned * size.per_epoch // READINGS)
    return RunConfig.parse(
        {
            **preset,
            "model": {"name": f"{PREFIX}-{depth}", "args": {"shortcut": shortcut, **size.model}},
            "data": preset["data"] | dict(size.data),
            "schedule": preset["schedule"] | {"milestones": [share * planned for share in DROPS]},
            "training": dict(size.training) | ({"epochs": epochs} if epochs else {}),
            "probes": [f"weight_norm@every:{every}"],
            "seed": seed,
        }
    )


def trainings(scale: Scale, shortcuts: Sequence[int]) -> Iterator[RunConfig]:
    """Every depth with every shortcut, over all starts of the scale."""
    for depth, (many, few) in SIZES[scale].seeds.items():
        for shortcut in shortcuts:
            for seed in range(many if shortcut == 2 else few):
                yield training(scale, depth, shortcut, seed)


def keys(one: Made) -> dict[str, Any]:
    """The columns that the tables here begin with."""
    model = one.config.model
    return {"depth": int(model.name.rpartition("-")[2]), "shortcut": int(model.args["shortcut"]), "seed": one.seed}


def per_epoch(one: Made) -> int:
    return int(one.run.record["steps_per_epoch"])
