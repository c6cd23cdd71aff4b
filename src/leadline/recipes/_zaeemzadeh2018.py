"""What the recipes on norm preservation share: networks, trainings of every scale, what is read of them.

Depth is that of the pre-activation ResNet; the ProcResNet beside it has two layers more. At the paper's scale Figs 3
and 4 and Table 1 train for 100 epochs at one rate, Fig. 5 and the tables of errors for 300 with their schedule. Below
it every network is trained once: the former look at the epochs before the rate first drops, the latter at all.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.analysis.claims import below
from leadline.analysis.verdict import Verdict, judge, undecided
from leadline.core import presets
from leadline.core.config import RunConfig, Scale
from leadline.core.study import Study
from leadline.core.table import Table
from leadline.recipes import Made

COUNTS = "leadline.recipes._parameter_counts:counts"
WATCHED = 100
"""Epochs that Figs 3, 4 and Table 1 show."""
EVERY = 2
"""Iterations from one projection to the next (section 4)."""

# prefix, layers beyond those of the ResNet, variant, whether the transitions are projected
NETS: dict[str, tuple[str, int, str, bool]] = {
    "plain": ("preplain", 0, "", False),
    "resnet": ("preresnet", 0, "", False),
    "procresnet": ("procresnet", 2, "", True),
    "resnet-erased": ("preresnet", 0, "erased", False),
    "procresnet-erased": ("procresnet", 2, "erased", True),
    "modified": ("procresnet", 2, "unprojected", False),
}
NAMES = {
    "plain": "Plain",
    "resnet": "ResNet",
    "procresnet": "ProcResNet",
    "resnet-erased": "ResNet, ErasedReLU",
    "procresnet-erased": "ProcResNet, ErasedReLU",
    "modified": "modified transitions, no projection",
}
COMPARED = ("plain", "resnet", "procresnet")


@dataclass(frozen=True, kw_only=True)
class Size:
    """Data and length of the trainings of a scale; ratios are read every `ratios` steps.

    `watched` and `tabled` say how many seeds each depth has where networks are watched and where errors are compared.
    """

    watched: Mapping[int, int]
    tabled: Mapping[int, int]
    data: Mapping[str, Any]
    samples: int
    batch: int
    epochs: int
    milestones: tuple[int, ...]
    ratios: int
    compared: int
    precision: str = "fp32"
    model: Mapping[str, Any] = field(default_factory=dict)

    @property
    def per_epoch(self) -> int:
        return self.samples // self.batch


SIZES: dict[Scale, Size] = {
    "smoke": Size(
        watched={20: 1, 29: 1},
        tabled={20: 1},
        data={"name": "digits", "args": {"train": 256, "test": 128}, "augment": "none"},
        samples=256,
        batch=32,
        epochs=3,
        milestones=(2,),
        ratios=4,
        compared=2,
        model={"widths": [2, 4, 8]},
    ),
    "laptop": Size(
        watched={20: 3, 83: 3, 164: 1},
        tabled={83: 3, 164: 1},
        data={"name": "cifar10", "args": {"train": 3000, "test": 1000, "pool": 2}},
        samples=3000,
        batch=64,
        epochs=8,
        milestones=(6, 7),
        ratios=8,
        compared=8,
        precision="bf16",
        model={"widths": [8, 16, 32]},
    ),
    "paper": Size(
        watched={20: 10, 83: 10, 164: 10},
        tabled={164: 5, 1001: 1},
        data={"name": "cifar10"},
        samples=50_000,
        batch=128,
        epochs=300,
        milestones=(150, 225),
        ratios=39,
        compared=78,
    ),
}


def model_name(net: str, depth: int) -> str:
    """What the network is called in the library.

    >>> model_name("procresnet-erased", 164)
    'procresnet-166-erased'
    """
    prefix, more, variant, _ = NETS[net]
    return "-".join([prefix, str(depth + more), *([variant] if variant else [])])


def net_and_depth(config: RunConfig) -> tuple[str, int]:
    """The net of `NETS` and the depth of the ResNet it belongs to."""
    prefix, number, *variants = config.model.name.split("-")
    variant = "-".join(variants)
    net = next(net for net, (a, _, b, _) in NETS.items() if (a, b) == (prefix, variant))
    return net, int(number) - NETS[net][1]


def training(net: str, depth: int, seed: int, scale: Scale, *, whole: bool = False, data: str = "") -> RunConfig:
    """A training of a scale; `whole` is that with the full schedule where the scale tells the two apart."""
    size, preset = SIZES[scale], presets.named("zaeemzadeh2018")
    short = scale == "paper" and not whole
    constant = {"name": "constant"}
    gap = f"generalisation_gap(batches={size.compared})@every:{size.per_epoch}"
    given: dict[str, Any] = {
        **preset,
        "model": {"name": model_name(net, depth), "args": dict(size.model)},
        "data": preset["data"] | dict(size.data) | {"batch_size": size.batch} | ({"name": data} if data else {}),
        "schedule": constant if short else preset["schedule"] | {"milestones": list(size.milestones)},
        "training": {"epochs": WATCHED if short else size.epochs, "precision": size.precision},
        "projection": {"every": EVERY} if NETS[net][3] else None,
        "probes": [f"gradient_norm_ratio(stem=true)@every:{size.ratios}", gap],
        "seed": seed,
    }
    return RunConfig.parse(given)


def watched(scale: Scale, *, seeds: int = 10) -> Iterator[RunConfig]:
    """The trainings of Figs 3 and 4 and Table 1."""
    for depth, count in SIZES[scale].watched.items():
        for net in COMPARED:
            for seed in range(min(seeds, count)):
                yield training(net, depth, seed, scale)


def tabled(scale: Scale, nets: Sequence[str], *, data: str = "") -> Iterator[RunConfig]:
    """The trainings of tables of errors; `data` stands in the place of the scale's own."""
    for depth, count in SIZES[scale].tabled.items():
        for net in nets:
            for seed in range(count):
                yield training(net, depth, seed, scale, whole=True, data=data)


def counting(nets: Sequence[tuple[str, int]], classes: int) -> Study:
    """The numbers of parameters of networks at full width."""
    return Study.of(COUNTS, seconds=2.0, models=tuple(model_name(*each) for each in nets), classes=classes)


def trained(made: Sequence[Made]) -> Iterator[tuple[Made, dict[str, Any]]]:
    """The trainings among what is made, with net, depth and seed."""
    for one in made:
        if isinstance(one.unit, RunConfig):
            net, depth = net_and_depth(one.config)
            yield one, {"net": net, "depth": depth, "seed": one.seed}


def shown_epochs(one: Made) -> int:
    """Epochs at the first learning rate, 100 of them at most."""
    milestones = one.config.schedule.milestones
    return min(WATCHED, int(milestones[0]) if milestones else one.config.training.epochs or 1)


def per_epoch(one: Made) -> int:
    return int(one.run.record["steps_per_epoch"])


def epochs_of(one: Made, name: str) -> dict[int, float]:
    """A reading that is one number by epoch, of those that are shown; the start is epoch 0."""
    steps, values = one.curve(name)
    count, last = per_epoch(one), shown_epochs(one)
    pairs = zip(steps.tolist(), values.tolist(), strict=True)
    return {step // count: value for step, value in pairs if step % count == 0 and step <= last * count}


def training_losses(one: Made) -> dict[int, float]:
    """The mean training loss of every epoch that is shown, the first being epoch 1."""
    steps, values = one.curve("train/loss")
    epochs = steps // per_epoch(one) + 1
    return {
        int(epoch): float(values[epochs == epoch].mean()) for epoch in np.unique(epochs[epochs <= shown_epochs(one)])
    }


def best_error(one: Made) -> float:
    """The least test error over all epochs, in percent, which is what the release reports; nan if it diverged."""
    accuracy = one.readings("test/accuracy")["value"]
    return float("nan") if one.diverged or not len(accuracy) else float(100 * (1 - accuracy.max()))


def at_every_depth(table: Table, value: str, first: str, second: str, *, of: str) -> Verdict:
    """The claim that a column is less for one net than for another at every depth that has both.

    It fails if it fails at one depth; it holds if it holds at all. Measured is the largest difference.
    """
    common = [depth for depth in depths(table, first) if depth in depths(table, second)]
    found = {
        depth: below(*(table.where(net=net, depth=depth)[value].tolist() for net in (first, second)))
        for depth in common
    }
    if not found:
        return undecided(f"no depth has both {NAMES[first]} and {NAMES[second]}")
    note = f"{of}: " + "; ".join(f"{depth}: {each.note}" for depth, each in found.items())
    outcomes = {each.outcome for each in found.values()}
    worst = max((each.measured for each in found.values() if math.isfinite(each.measured)), default=math.nan)
    least = min(each.seeds for each in found.values())
    if "fails" not in outcomes and "undecided" in outcomes:
        return undecided(note, measured=worst, seeds=least)
    return judge("fails" not in outcomes, worst, seeds=least, note=note)


def depths(table: Table, net: str) -> list[int]:
    """The depths there are of a net, growing."""
    return sorted(set(table.where(net=net)["depth"].tolist())) if table.height else []


def deepest_common(table: Table, nets: Sequence[str]) -> int:
    """The largest depth that all these nets have; 0 if there is none."""
    common = set.intersection(*(set(depths(table, net)) for net in nets))
    return max(common, default=0)


def by_seed(table: Table, value: str) -> list[float]:
    """The mean of a column for every seed."""
    return [float(table.where(seed=seed)[value].mean()) for seed in sorted(set(table["seed"].tolist()))]


def distance(ratios: NDArray[np.float64]) -> float:
    """How far ratios are from one: the mean of |log10 ratio| over those that are positive and finite.

    >>> round(distance(np.array([0.1, 10.0, 1.0])), 3)
    0.667
    """
    known = ratios[np.isfinite(ratios) & (ratios > 0)]
    return float(np.abs(np.log10(known)).mean()) if len(known) else float("nan")
