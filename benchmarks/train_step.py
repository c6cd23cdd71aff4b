"""One training step of ours (data, augmentation, forward, backward, step, recording the loss) beside a bare loop."""

from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from harness import Row, interleave, ratio_row, run
from torch import nn
from torch.nn import functional

from leadline.core.config import RunConfig
from leadline.data import Batches, Dataset
from leadline.data.dataset import InMemory
from leadline.execute.run_one import Settings, Silent, Watch, Workshop
from leadline.store.layout import RunFolder
from leadline.store.writer import RunWriter

STEPS = 2


def workshop(precision: str) -> Workshop:
    """ResNet-20 on as many bytes as CIFAR-10 has: noise costs what photographs cost."""
    config = RunConfig.parse(
        {
            "model": "resnet-20",
            "data": {"name": "random", "batch_size": 128, "augment": "crop-flip"},
            "training": {"steps": 10_000, "precision": precision},
        }
    )
    images = torch.randint(256, (50_000, 3, 32, 32), dtype=torch.uint8)
    split = InMemory(images, torch.randint(10, (50_000,)))
    return Workshop.build(config, torch.device("cpu"), dataset=Dataset("noise", 10, split, split, digest=""))


class Ours:
    """Our loop, watched and recorded as in a real run, a few steps at a time."""

    def __init__(self, precision: str, folder: Path) -> None:
        self.workshop, self.step = workshop(precision), 0
        settings = Settings(checkpoint_seconds=1e9)
        kept = RunFolder(folder / precision)
        self.watch = Watch(self.workshop, RunWriter(kept.path), settings, Silent(), best={}, folder=kept)

    def __call__(self) -> None:
        self.workshop.trainer.run(self.workshop.batches, self.watch, start=self.step, steps=self.step + STEPS)
        self.step += STEPS


class Bare:
    """The loop everybody writes, on the same batches, made beforehand.

    It trains the very model that ours does: where its weights lie in memory makes more difference than the loop.
    """

    def __init__(self, batches: Batches, model: nn.Module) -> None:
        self.model = model
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
        everything = batches.epoch(0)
        self.batches = [next(everything) for _ in range(STEPS)]

    def __call__(self) -> None:
        for inputs, targets in self.batches:
            self.optimizer.zero_grad(set_to_none=True)
            loss = functional.cross_entropy(self.model(inputs), targets)
            loss.backward()
            self.optimizer.step()


def measure(rounds: int) -> list[Row]:
    with TemporaryDirectory() as folder:
        ours, half = Ours("fp32", Path(folder)), Ours("bf16", Path(folder))
        bare = Bare(ours.workshop.batches, ours.workshop.trainer.model)
        times = interleave({"ours": ours, "bare loop": bare, "ours, bf16": half}, rounds=rounds)
    note = f"{times['bare loop'].median / STEPS * 1e3:.0f} ms a bare step"
    fp32, bf16 = times["ours"], times["ours, bf16"]
    return [
        ratio_row(
            "training step, ResNet-20, batch 128",
            top=fp32,
            bottom=times["bare loop"],
            bar=1.03,
            at_most=True,
            note=note,
        ),
        ratio_row("bf16 step against our fp32", top=bf16, bottom=fp32, bar=0.65, at_most=True),
    ]


if __name__ == "__main__":
    run(measure, description=__doc__, rounds=15)
