"""What the recipes of Oyedotun, Al Ismaeil and Aouada share: the networks compared and how they are trained.

The paper leaves open whether its plain networks had batch norm. Here they are trained both ways: `PlainNet` has it, as
the ResNets do, `PlainNet, no norm` does not. The tables and figures come from one set of trainings, all probes in each.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from leadline.core.config import Data, Named, Optimizer, RunConfig, Scale, Schedule, Training
from leadline.recipes import Made


@dataclass(frozen=True, kw_only=True)
class Net:
    """A network of the comparison: the family that builds it at any depth, and its norm."""

    prefix: str
    norm: str = "batch"


NETS = {
    "PlainNet": Net(prefix="plainnet"),
    "PlainNet, no norm": Net(prefix="plainnet", norm="none"),
    "ResNet": Net(prefix="resnet"),
    "ResNeXt": Net(prefix="resnext"),
    "ResNet, no norm": Net(prefix="resnet", norm="none"),
}
COMPARED = ("PlainNet", "PlainNet, no norm", "ResNet", "ResNeXt")
PLAIN, SKIPPING = COMPARED[:2], COMPARED[2:]
COLOURS = dict(zip(NETS, ("#D55E00", "#E69F00", "#0072B2", "#009E73", "#56B4E9"), strict=True))


@dataclass(frozen=True, kw_only=True)
class Task:
    """Data, depth and kind of the networks of a table or figure; `variant` is part of a model's name."""

    data: str
    depth: int
    variant: str = ""


TASKS = {
    "mnist": Task(data="mnist", depth=110),
    "cifar10": Task(data="cifar10", depth=110),
    "cifar100": Task(data="cifar100", depth=110),
    "cifar100-101": Task(data="cifar100", depth=101),
    "imagenet": Task(data="imagenet", depth=101, variant="-imagenet"),
    "mnist-200": Task(data="mnist", depth=200),
    "mnist-linear": Task(data="mnist", depth=164, variant="-linear"),
}
NAMES = {"mnist": "MNIST", "cifar10": "CIFAR-10", "cifar100": "CIFAR-100", "imagenet": "ImageNet", "digits": "digits"}
CLASSES = {"cifar100": 100, "imagenet": 1000}
SAMPLES = {"mnist": 60_000, "cifar10": 50_000, "cifar100": 50_000, "imagenet": 1_281_167}

STEPS = {"smoke": 13, "laptop": 361}
POINTS = {"smoke": 6, "laptop": 60}
"""Every how many steps of a short run ranges and accuracies are read; the last step is among them."""
SEEDS: dict[Scale, int] = {"smoke": 1, "laptop": 1, "paper": 3}
RATE = 0.1
"""The largest of the range that the paper gives."""
SEARCHED: dict[Scale, tuple[float, ...]] = {"smoke": (), "laptop": (0.01, 0.001), "paper": (0.01, 0.001, 0.0001)}
"""Other rates at which plain networks are tried, as the paper's search over hyperparameters found none that works."""
UNCHANGED = 1e-300
"""A rate that is zero in single precision: such a run reads the network as it was initialised."""


def here(task: str, scale: Scale) -> Task:
    """The task at a scale: smaller scales put data at hand in the place of CIFAR-100 and ImageNet."""
    found = TASKS[task]
    if scale == "paper":
        return found
    if scale == "laptop":
        photographs = found.data in ("cifar100", "imagenet")
        return replace(found, data="cifar10", variant="") if photographs else found
    return Task(data="digits", depth=20, variant="-linear" if found.variant == "-linear" else "")


def trainings(scale: Scale, *tasks: str, nets: Sequence[str] = COMPARED) -> Iterator[RunConfig]:
    """The trainings of these networks on these tasks, over all seeds of the scale."""
    for seed in range(SEEDS[scale]):
        for task in tasks:
            for net in nets:
                yield training(scale, here(task, scale), net, seed=seed)


def search(scale: Scale, task: str) -> Iterator[RunConfig]:
    """Plain networks at the other rates of the range."""
    for net in PLAIN:
        for rate in SEARCHED[scale]:
            yield training(scale, here(task, scale), net, seed=0, rate=rate)


def starts(scale: Scale, *tasks: str, nets: Sequence[str] = COMPARED) -> Iterator[RunConfig]:
    """The same networks as they were initialised."""
    for config in trainings(scale, *tasks, nets=nets):
        yield config.model_copy(
            update={
                "data": config.data.model_copy(update={"args": config.data.args | {"test": config.data.batch_size}}),
                "optimizer": Optimizer(lr=UNCHANGED, momentum=0, weight_decay=0),
                "schedule": Schedule(),
                "training": Training(steps=1, precision=config.training.precision),
                "probes": STILL,
            }
        )


def training(scale: Scale, task: Task, net: str, *, seed: int, rate: float | None = None) -> RunConfig:
    """One training; `rate` is the learning rate it starts with, the scale's when not given."""
    model = Named(name=f"{NETS[net].prefix}-{task.depth}{task.variant}", args={"norm": NETS[net].norm})
    parts = paper(task) if scale == "paper" else short(scale, task, net)
    optimizer = parts["optimizer"] if rate is None else parts["optimizer"].model_copy(update={"lr": rate})
    return RunConfig(model=model, seed=seed, **parts | {"optimizer": optimizer})


def paper(task: Task) -> dict[str, Any]:
    """As published: batches of 128, momentum 0.9, weight decay 1e-4, 200 epochs over the whole range of rates."""
    per_epoch = SAMPLES[task.data] // 128
    augmented = task.data.startswith("cifar")
    return {
        "data": Data(name=task.data, batch_size=128, augment="crop-flip" if augmented else "none", pad="reflect"),
        "optimizer": Optimizer(lr=RATE, momentum=0.9, weight_decay=1e-4),
        "schedule": Schedule(name="step", milestones=(60, 120, 160), factor=0.1),
        "training": Training(epochs=200),
        "probes": probes(every=5 * per_epoch, batches=40),
    }


def short(scale: Scale, task: Task, net: str) -> dict[str, Any]:
    """So many steps as the scale allows, the rate divided by ten at 70% and 90% of them."""
    steps = STEPS[scale]
    laptop = scale == "laptop"
    args = {"train": 6400 if task.data == "mnist" else 3200, "test": 1000, "pool": 2} if laptop else {"train": 416}
    size = 64 if laptop else 32
    per_epoch = args["train"] // size
    return {
        "data": Data(name=task.data, args=args, batch_size=size),
        "optimizer": Optimizer(lr=short_rate(net), momentum=0.9, weight_decay=1e-4),
        "schedule": Schedule(name="step", milestones=(0.7 * steps / per_epoch, 0.9 * steps / per_epoch), factor=0.1),
        "training": Training(steps=steps, precision="bf16" if laptop else "fp32"),
        "probes": probes(every=POINTS[scale], batches=8),
    }


def short_rate(net: str) -> float:
    """Without the epochs that a residual network takes to recover from a rate of 0.1, it is given a smaller one."""
    return RATE if net in PLAIN else 0.02


STILL = ("weight_condition@end", "hidden_condition(samples=64)@end", "collinearity(samples=64)@end")


def probes(*, every: int, batches: int) -> tuple[str, ...]:
    """Conditions at the end; ranges and accuracies on the way."""
    moving = ("output_range", "weight_range", "gradient_range", f"generalisation_gap(batches={batches})")
    return (*STILL, *(f"{probe}@every:{every}" for probe in moving))


def net_of(one: Made) -> str:
    """What a run's network is called in the comparison."""
    model = one.config.model
    prefix = model.name.partition("-")[0]
    return next(name for name, net in NETS.items() if net == Net(prefix=prefix, norm=model.args["norm"]))


def depth_of(one: Made) -> int:
    return int(one.config.model.name.split("-")[1])


def keys(one: Made) -> dict[str, Any]:
    """The columns that every table here begins with."""
    return {"net": net_of(one), "data": one.config.data.name, "depth": depth_of(one), "seed": one.seed}


def is_start(one: Made) -> bool:
    return one.config.optimizer.lr == UNCHANGED


def trained(made: Sequence[Made]) -> list[Made]:
    return [one for one in made if not is_start(one)]


def place(one: Made) -> str:
    """Data and depth in words.

    A figure's panel is called by it.
    """
    return f"{NAMES[one.config.data.name]}, {depth_of(one)} layers"
