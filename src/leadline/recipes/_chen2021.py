"""What the recipes of Chen et al. share: four architectures with four endings each, their trainings, their accuracies.

Tables 1 and 2 and our comparison at equal learning rates come from one set of trainings. Below the paper's scale the
architectures have smaller stand-ins; parameters are counted at full size at every scale, on tensors without content.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import Any

from leadline.core import presets
from leadline.core.config import RunConfig, Scale
from leadline.core.study import Study
from leadline.core.table import Table
from leadline.recipes import Made

COUNTS = "leadline.recipes._parameter_counts:counts"
ENDINGS = {"Standard": "", "ResNEst": "resnest-", "BN-ResNEst": "bn-resnest-", "A-ResNEst": "a-resnest-"}
NETS = {
    "WRN-16-8": "wrn-16-8",
    "WRN-40-4": "wrn-40-4",
    "ResNet-110": "preresnet-basic-110",
    "ResNet-20": "preresnet-basic-20",
}
COLOURS = dict(zip(ENDINGS, ("#0072B2", "#D55E00", "#009E73", "#CC79A7"), strict=True))
RATE, LOWER = 0.1, 0.01
"""The rate of all networks, and that of ResNEsts (appendix B.3)."""
FALLS = (0.3, 0.6, 0.8)
"""Where in a training the rate is divided by five: after epochs 60, 120 and 160 of 200."""
COLUMNS = ("net", "ending", "model", "data", "seed", "rate", "outcome", "test_accuracy", "parameters", "millions")


@dataclass(frozen=True, kw_only=True)
class Size:
    """What stands in for each architecture, with how many starts; data by number of classes, and the training."""

    nets: Mapping[str, tuple[str, int]]
    data: Mapping[int, Mapping[str, Any]]
    training: Mapping[str, Any]
    model: Mapping[str, Any]


DIGITS = {"name": "digits", "args": {"train": 256, "test": 128}, "batch_size": 32, "augment": "none"}
PHOTOGRAPHS = {"name": "cifar10", "args": {"train": 3200, "test": 1000, "pool": 2}, "batch_size": 64}
SIZES: dict[Scale, Size] = {
    "smoke": Size(
        nets={"WRN-16-8": ("wrn-10-1", 1), "ResNet-20": ("preresnet-basic-8", 1)},
        data={10: DIGITS, 100: DIGITS},
        training={"epochs": 2},
        model={"widths": [4, 8, 16]},
    ),
    "laptop": Size(
        nets={
            "WRN-16-8": ("wrn-16-2", 1),
            "WRN-40-4": ("wrn-40-1", 1),
            "ResNet-110": ("preresnet-basic-56", 1),
            "ResNet-20": ("preresnet-basic-20", 3),
        },
        data={10: PHOTOGRAPHS, 100: PHOTOGRAPHS},
        training={"epochs": 6, "evaluate_every": 6, "precision": "bf16"},
        model={},
    ),
    "paper": Size(
        nets={net: (name, 7) for net, name in NETS.items()},
        data={10: {"name": "cifar10"}, 100: {"name": "cifar100"}},
        training={"epochs": 200},
        model={},
    ),
}


def training(scale: Scale, net: str, ending: str, seed: int, *, rate: float, classes: int = 10) -> RunConfig:
    """A training of a scale."""
    size, preset = SIZES[scale], presets.named("chen2021")
    name, _ = size.nets[net]
    epochs = int(size.training["epochs"])
    return RunConfig.parse(
        {
            **preset,
            "model": {"name": ENDINGS[ending] + name, "args": {} if name.startswith("wrn") else dict(size.model)},
            "data": preset["data"] | dict(size.data[classes]),
            "optimizer": preset["optimizer"] | {"lr": rate},
            "schedule": preset["schedule"] | {"milestones": [share * epochs for share in FALLS]},
            "training": dict(size.training),
            "seed": seed,
        }
    )


def trainings(scale: Scale, classes: int) -> Iterator[RunConfig]:
    """Every architecture with every ending at the rates of the paper, over all starts of the scale."""
    for net, (_, seeds) in SIZES[scale].nets.items():
        for ending in ENDINGS:
            rate = LOWER if ending == "ResNEst" else RATE
            for seed in range(seeds):
                yield training(scale, net, ending, seed, rate=rate, classes=classes)


def counting(classes: int) -> Study:
    """The numbers of parameters of all networks at full size."""
    models = tuple(before + name for name in NETS.values() for before in ENDINGS.values())
    return Study.of(COUNTS, seconds=2.0, models=models, classes=classes)


def table(made: Sequence[Made]) -> Table:
    """A row a training with its test accuracy in percent, and a row a network with its parameters at full size."""
    rows = [row for one in made for row in ([_trained(one)] if isinstance(one.unit, RunConfig) else _counted(one))]
    return Table.from_rows(rows, COLUMNS)


def _trained(one: Made) -> dict[str, Any]:
    config = one.config
    net, ending = read_name(config.model.name)
    return {
        "net": net,
        "ending": ending,
        "model": config.model.name,
        "data": config.data.name,
        "seed": one.seed,
        "rate": config.optimizer.lr,
        "outcome": str(one.outcome.get("outcome", "")),
        "test_accuracy": nan if one.diverged else 100 * one.last("test/accuracy"),
        "parameters": nan,
        "millions": nan,
    }


def _counted(one: Made) -> Iterator[dict[str, Any]]:
    found = one.readings("parameters")
    data = f"cifar{one.args['classes']}"
    for place, count in zip(found["step"].tolist(), found["value"].tolist(), strict=True):
        model = one.args["models"][place]
        net, ending = read_name(model)
        row = {"net": net, "ending": ending, "model": model, "data": data, "seed": one.seed, "outcome": "counted"}
        yield row | {"rate": nan, "test_accuracy": nan, "parameters": count, "millions": count / 1e6}


def read_name(model: str) -> tuple[str, str]:
    """The architecture that a model is or stands for, and its ending.

    >>> read_name("bn-resnest-wrn-16-2")
    ('WRN-16-8', 'BN-ResNEst')
    """
    ending, before = max(
        ((ending, before) for ending, before in ENDINGS.items() if model.startswith(before)),
        key=lambda pair: len(pair[1]),
    )
    stands = {name: net for size in SIZES.values() for net, (name, _) in size.nets.items()}
    return stands[model.removeprefix(before)], ending


def called(rows: Table) -> str:
    """The architecture that rows are of and, where another stands in for it, that one on a second line."""
    net, model = str(rows["net"][0]), str(rows["model"][0])
    here = model.removeprefix(ENDINGS[rows["ending"][0]])
    return net if here == NETS[net] else f"{net}\n(here {here})"
