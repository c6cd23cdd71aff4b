"""Learning rates of every group, as numbers or tensors, and back."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from leadline import models, remedies


def groups(rates: list[float | Tensor]) -> tuple[nn.Module, torch.optim.Optimizer]:
    model = nn.Sequential(*(nn.Linear(2, 2) for _ in rates))
    chosen = [{"params": layer.parameters(), "lr": lr} for layer, lr in zip(model, rates, strict=True)]
    return model, torch.optim.SGD(chosen, lr=1.0)


@pytest.mark.parametrize(("name", "factor"), [("lower-learning-rate", 0.1), ("raise-learning-rate", 10.0)])
def test_every_rate_is_scaled_and_put_back(name: str, factor: float) -> None:
    rate = torch.tensor(0.25)
    model, optimizer = groups([0.5, rate])
    change = remedies.apply(model, name, optimizer=optimizer)
    assert optimizer.param_groups[0]["lr"] == 0.5 * factor
    assert optimizer.param_groups[1]["lr"] is rate and rate.item() == pytest.approx(0.25 * factor)
    assert change.changed[0] == ("group 0", f"learning rate 0.5 -> {0.5 * factor:g}")
    change.undo()
    assert optimizer.param_groups[0]["lr"] == 0.5 and rate.item() == 0.25


def test_a_scheduler_built_later_starts_from_the_new_rate() -> None:
    model, optimizer = groups([0.5])
    torch.optim.lr_scheduler.StepLR(optimizer, 1)
    change = remedies.apply(model, "lower-learning-rate", optimizer=optimizer, factor=0.5)
    assert optimizer.param_groups[0]["initial_lr"] == 0.25
    change.undo()
    assert optimizer.param_groups[0]["initial_lr"] == 0.5


def test_zero_stays_zero_and_is_said() -> None:
    model, optimizer = groups([0.0])
    change = remedies.apply(model, "raise-learning-rate", optimizer=optimizer)
    assert change.no_op and change.reason == "every learning rate is 0"


@pytest.mark.parametrize(("name", "lr"), [("lower-learning-rate", 3.0), ("raise-learning-rate", 1e-3)])
def test_a_sound_net_at_the_wrong_rate_learns(name: str, lr: float, learns: Callable[..., float]) -> None:
    def training() -> tuple[nn.Module, torch.optim.Optimizer]:
        torch.manual_seed(0)
        model = models.create("resnet-14", stem="mnist", widths=(8, 16, 32))
        return model, torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)

    model, optimizer = training()
    remedies.apply(model, name, optimizer=optimizer)
    assert learns(*training()) > 1.4
    assert learns(model, optimizer) < 0.7
