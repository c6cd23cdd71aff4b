"""The loop against one written by hand, and its arithmetic against the obvious one."""

import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from leadline.core import config
from leadline.data import Batches, load
from leadline.train import optim
from leadline.train.evaluate import SquaredError, evaluate, loss_function
from leadline.train.loop import NotFinite, Trainer, stream


class Notes:
    """An observer that writes down what it is told."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.losses: list[float] = []
        self.stop_after = stop_after

    def around(self, step: int, inputs: Tensor, targets: Tensor) -> torch.no_grad:
        return torch.enable_grad()  # type: ignore[return-value]

    def loss(self, step: int, value: float) -> None:
        assert step == len(self.losses)
        self.losses.append(value)

    def updated(self, step: int, loss: Tensor) -> None:
        assert loss.item() == self.losses[step]

    def after(self, steps: int) -> bool:
        return steps != self.stop_after


def net() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 10)).double()


def batches(**options: object) -> Batches:
    return Batches(load("digits").train, batch_size=100, dtype=torch.float64, **options)  # type: ignore[arg-type]


def trainer(model: nn.Module, **options: object) -> Trainer:
    return Trainer(
        forward=model,
        model=model,
        optimizer=optim.build(config.Optimizer(nesterov=True), model),
        loss_fn=nn.CrossEntropyLoss(),
        rate=lambda step: 0.1 / (1 + step),
        **options,  # type: ignore[arg-type]
    )


def test_the_loop_is_the_obvious_loop() -> None:
    torch.manual_seed(1)
    ours, theirs = net(), net()
    theirs.load_state_dict(ours.state_dict())
    notes = Notes()
    trainer(ours).run(batches(), notes, start=0, steps=20)

    optimizer = torch.optim.SGD(theirs.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-4)
    everything = [*batches().epoch(0), *batches().epoch(1)][:20]
    wanted = []
    for step, (inputs, targets) in enumerate(everything):
        optimizer.param_groups[0]["lr"] = 0.1 / (1 + step)
        loss = functional.cross_entropy(theirs(inputs), targets)
        wanted.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert notes.losses == wanted
    assert all(torch.equal(a, b) for a, b in zip(ours.parameters(), theirs.parameters(), strict=True))


def test_accumulated_pieces_are_the_whole_batch() -> None:
    model = net()
    inputs, targets = next(batches().epoch(0))
    whole = trainer(model).backward(inputs, targets)
    gradient = [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]
    model.zero_grad()
    pieces = trainer(model, accumulate=4).backward(inputs, targets)
    assert pieces.item() == pytest.approx(whole.item(), rel=1e-14)
    for parameter, wanted in zip(model.parameters(), gradient, strict=True):
        torch.testing.assert_close(parameter.grad, wanted, rtol=1e-12, atol=1e-15)


def test_clipping_bounds_the_step() -> None:
    model = net()
    before = torch.cat([parameter.detach().flatten().clone() for parameter in model.parameters()])
    plain = Trainer(
        forward=model,
        model=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=1.0),
        loss_fn=nn.CrossEntropyLoss(),
        rate=lambda step: 1.0,
        clip=0.01,
    )
    plain.run(batches(), Notes(), start=0, steps=1)
    after = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    assert (after - before).norm().item() == pytest.approx(0.01, rel=1e-3)


def test_the_stream_goes_on_where_it_stopped() -> None:
    whole = list(stream(batches(), 0, 40))
    rest = list(stream(batches(), 17, 40))
    assert [step for step, _ in rest] == list(range(17, 40))
    for (_, a), (_, b) in zip(whole[17:], rest, strict=True):
        assert torch.equal(a[0], b[0]) and torch.equal(a[1], b[1])


def test_an_observer_can_end_the_run() -> None:
    notes = Notes(stop_after=3)
    trainer(net()).run(batches(), notes, start=0, steps=20)
    assert len(notes.losses) == 3


def test_a_loss_that_is_no_number_ends_the_run() -> None:
    model = net()
    with torch.no_grad():
        model[3].weight.fill_(math.nan)  # type: ignore[operator,union-attr]
    notes = Notes()
    with pytest.raises(NotFinite) as caught:
        trainer(model).run(batches(), notes, start=0, steps=5)
    assert caught.value.step == 0 and math.isnan(notes.losses[0])


def test_scores_are_those_of_the_whole_split_at_once() -> None:
    model = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(64), nn.Dropout(), nn.Linear(64, 10)).double().train()
    split = load("digits").test
    every = Batches(split, batch_size=77, dtype=torch.float64, shuffle=False, drop_last=False)
    score = evaluate(model, every.epoch(0), loss_function("auto", split.targets))
    assert model.training
    with torch.no_grad():
        outputs = model.eval()(split.inputs.double() / 255)
    assert score.count == len(split)
    assert score.loss == pytest.approx(functional.cross_entropy(outputs, split.targets).item(), rel=1e-12)
    assert score.accuracy == (outputs.argmax(1) == split.targets).double().mean().item()


def test_squared_error_is_half_the_mean_squared_norm() -> None:
    outputs, targets = torch.randn(5, 3, dtype=torch.float64), torch.tensor([0, 2, 1, 1, 0])
    wanted = sum(((outputs[n] - functional.one_hot(targets, 3)[n]) ** 2).sum() / 2 for n in range(5)) / 5
    torch.testing.assert_close(SquaredError()(outputs, targets), wanted)
    torch.testing.assert_close(SquaredError()(outputs, functional.one_hot(targets, 3).double()), wanted)
