"""Rates and decay groups against torch's own schedulers and a count by hand."""

import math
from itertools import pairwise

import pytest
import torch
from torch import nn
from torch.optim import SGD, lr_scheduler

from leadline.core import config
from leadline.train import optim


def theirs(make: object, steps: int) -> list[float]:
    optimizer = SGD([nn.Parameter(torch.zeros(1))], lr=0.1, momentum=0.9)
    scheduler = make(optimizer)  # type: ignore[operator]
    rates = []
    for _ in range(steps):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return rates


def ours(schedule: dict[str, object], steps: int, per_epoch: int = 10) -> list[float]:
    part = config.Schedule.model_validate(schedule)
    rate = optim.rate(part, base=0.1, steps=steps, steps_per_epoch=per_epoch)
    return [rate(step) for step in range(steps)]


def test_step_schedule() -> None:
    wanted = theirs(lambda o: lr_scheduler.MultiStepLR(o, [20, 35], gamma=0.2), 50)
    assert ours({"name": "step", "milestones": (2, 3.5), "factor": 0.2}, 50) == pytest.approx(wanted, rel=1e-12)


def test_cosine_schedule() -> None:
    wanted = theirs(lambda o: lr_scheduler.CosineAnnealingLR(o, 50), 50)
    assert ours({"name": "cosine"}, 50) == pytest.approx(wanted, rel=1e-9)


def test_one_cycle_starts_peaks_and_ends_where_it_should() -> None:
    rates = ours({"name": "one-cycle"}, 1000)
    assert rates[0] == pytest.approx(0.1 / 25)
    assert max(rates) == pytest.approx(0.1, rel=1e-3)
    assert rates.index(max(rates)) == 300
    assert rates[-1] < 1e-5 and all(a > b for a, b in pairwise(rates[300:]))


def test_warm_up_rises_linearly_to_the_schedule() -> None:
    rates = ours({"name": "cosine", "warmup": 1}, 50)
    assert rates[:10] == pytest.approx([0.01 * k for k in range(1, 11)])
    assert rates[10] == pytest.approx(0.1)
    assert rates[30] == pytest.approx(0.05 * (1 + math.cos(math.pi / 2)))


def test_decay_groups() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(4, 2))
    everything = optim.decay_groups(model, 1e-4, decay_norms=True)
    assert [len(group["params"]) for group in everything] == [6]  # type: ignore[arg-type]
    matrices, vectors = optim.decay_groups(model, 1e-4, decay_norms=False)
    assert (len(matrices["params"]), matrices["weight_decay"]) == (2, 1e-4)  # type: ignore[arg-type]
    assert (len(vectors["params"]), vectors["weight_decay"]) == (4, 0.0)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["sgd", "adam", "adamw"])
def test_optimisers_step_downhill(name: str) -> None:
    model = nn.Linear(3, 1)
    optimizer = optim.build(config.Optimizer(name=name, lr=0.01), model)  # type: ignore[arg-type]
    optim.set_rate(optimizer, 0.02)
    before = model(torch.ones(1, 3)).pow(2).sum()
    before.backward()
    optimizer.step()
    assert model(torch.ones(1, 3)).pow(2).sum() < before
    assert optimizer.param_groups[0]["lr"] == 0.02
