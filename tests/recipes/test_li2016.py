"""What Figs 2 to 9 of Li et al. rest on: trainings beside a plain loop, and claims on tables made by hand."""

import numpy as np
import pytest
import torch
from torch import nn

from leadline.core.table import Table
from leadline.linalg.relu_chain import ReluChain
from leadline.recipes import _li2016_norms as norms
from leadline.recipes import li2016_fig8, li2016_fig9
from leadline.recipes._linear_nets import SHORTCUTS, final_losses, problem, start
from leadline.recipes._linear_nets import norms as linear_norms
from leadline.recipes._relu_nets import Problem, outputs, trainings

NETS = ("2-shortcut", "xavier", "orthogonal")
RATES = (0.01, 0.1)
SAMPLES = 40


class Net(nn.Module):
    """Units of two layers with a ReLU between them where asked for, and the identity beside each with `skip`."""

    def __init__(self, weights: torch.Tensor, *, skip: bool, relu: bool) -> None:
        super().__init__()
        self.weights = nn.ParameterList(nn.Parameter(weight.clone()) for weight in weights)
        self.skip, self.relu = skip, relu

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for first, second in zip(self.weights[::2], self.weights[1::2], strict=True):
            hidden = x @ first.T
            branch = (torch.relu(hidden) if self.relu else hidden) @ second.T
            x = x + branch if self.skip else branch
        return x


def trained(net: Net, x: torch.Tensor, y: torch.Tensor, *, rate: float, epochs: int) -> float:
    optimizer = torch.optim.SGD(net.parameters(), lr=rate)
    for _ in range(epochs):
        optimizer.zero_grad()
        ((net(x) - y).square().sum() / (2 * len(x))).backward()
        optimizer.step()
    with torch.no_grad():
        return float((net(x) - y).square().sum() / (2 * len(x)))


@pytest.mark.parametrize("net", NETS)
def test_many_relu_nets_are_those_of_the_exact_chain(net: str) -> None:
    x, y = (part[:SAMPLES] for part in problem("digits"))
    weights = torch.stack([start(net, 4, seed) for seed in (0, 1)]) * 3
    skip = bool(SHORTCUTS[net])
    chain = ReluChain(unit=2, skip=skip, relu=("mid",))
    losses, slopes = Problem.of("digits", SAMPLES, torch.float64).loss_and_gradient(weights, skip=skip)
    for one, given, loss, slope in zip(weights, outputs(weights, x.T, skip=skip), losses, slopes, strict=True):
        leaf = one.clone().requires_grad_()
        expected = chain.loss(leaf, x, y)
        (gradient,) = torch.autograd.grad(expected, leaf)
        torch.testing.assert_close(given.T, chain.output(one, x))
        torch.testing.assert_close(loss, expected.detach())
        torch.testing.assert_close(slope, gradient)


@pytest.mark.parametrize("net", NETS)
def test_trainings_with_relus_end_where_a_loop_with_an_optimiser_does(net: str) -> None:
    x, y = (part[:SAMPLES].float() for part in problem("digits"))
    common = {"data": "digits", "samples": SAMPLES, "net": net, "depth": 4, "seed": 1}
    read = list(trainings(**common, rates=RATES, epochs=10, every=4))
    assert [step for step, name, _ in read if name == "loss"] == [0, 4, 8, 10]
    losses = next(value for step, name, value in read if (step, name) == (10, "loss"))
    for loss, rate in zip(losses, RATES, strict=True):
        plain = Net(start(net, 4, 1).float(), skip=bool(SHORTCUTS[net]), relu=True)
        assert loss == pytest.approx(trained(plain, x, y, rate=rate, epochs=10), rel=1e-4)


@pytest.mark.parametrize("net", NETS)
def test_linear_nets_end_where_a_loop_on_the_samples_does(net: str) -> None:
    x, y = problem("digits")
    read = list(final_losses(data="digits", net=net, depth=4, seeds=2, rates=RATES, epochs=10))
    losses = next(value for step, name, value in read if (step, name) == (1, "loss"))
    for loss, rate in zip(losses, RATES, strict=True):
        plain = Net(start(net, 4, 1), skip=bool(SHORTCUTS[net]), relu=False)
        assert loss == pytest.approx(trained(plain, x, y, rate=rate, epochs=10), rel=1e-9)


def test_norms_are_read_along_the_run_with_the_best_rate() -> None:
    read = list(linear_norms(data="digits", net="2-shortcut", depth=4, seed=0, rates=RATES, epochs=20, every=10))
    found = {(step, name): value for step, name, value in read}
    begun = start("2-shortcut", 4, 0)
    assert found[0, "rate"] == 0.1
    assert found[0, "norm"] == pytest.approx(np.mean([float(weight.norm()) for weight in begun]))
    assert sorted(step for step, name in found if name == "norm") == [0, 10, 20]


def by_depth(*curves: tuple[int, list[float]]) -> Table:
    rows = [
        {"depth": depth, "seed": seed, "epoch": float(epoch), "norm": norm}
        for depth, values in curves
        for seed in (0, 1)
        for epoch, norm in enumerate(values)
    ]
    return Table.from_rows(rows)


def test_norms_are_in_order_of_depth_at_the_end_or_throughout() -> None:
    crossing = by_depth((4, [1.0, 2.0, 3.0]), (16, [1.0, 2.5, 1.5]))
    assert norms.at_the_end(crossing).outcome == "holds" and norms.at_the_end(crossing).measured == 2
    assert norms.throughout(crossing).outcome == "fails" and norms.throughout(crossing).measured == pytest.approx(0.8)
    assert "1 of 2 epochs" in norms.throughout(crossing).note
    assert norms.throughout(by_depth((4, [1.0, 2.0]), (16, [1.0, 1.9]))).outcome == "holds"
    assert norms.at_the_end(by_depth((4, [1.0, 2.0]), (16, [1.0, 2.1]))).outcome == "fails"
    assert norms.throughout(by_depth((4, [1.0, float("nan")]), (16, [1.0, 2.1]))).outcome == "undecided"


def test_the_root_of_depth_is_told_from_other_laws() -> None:
    assert norms.as_a_root(by_depth((4, [2.0]), (16, [1.0]), (64, [0.5]))).outcome == "holds"
    assert norms.as_a_root(by_depth((4, [2.0]), (16, [2.0]), (64, [2.0]))).outcome == "fails"


def ends(**means: list[float]) -> Table:
    rows = [
        {"net": net, "depth": depth, "samples": 10, "seed": seed, "loss": loss + 0.001 * seed, "spread": 1.05}
        for net, losses in means.items()
        for depth, loss in zip((4, 8, 16), losses, strict=True)
        for seed in range(3)
    ]
    return Table.from_rows([row | {"net": row["net"].replace("shortcut", "2-shortcut")} for row in rows])


def test_final_losses_of_relu_nets_are_judged_at_the_largest_depth() -> None:
    table = ends(shortcut=[0.5, 0.3, 0.1], xavier=[0.2, 0.3, 0.5])
    assert li2016_fig8.lower("xavier")(table).outcome == "holds"
    assert li2016_fig8.not_worse(table).outcome == "holds"
    assert li2016_fig8.worse("xavier")(table).outcome == "holds"
    assert li2016_fig8.worse("xavier")(ends(xavier=[0.5, 0.3, 0.1])).outcome == "fails"
    assert li2016_fig8.same_at_every_rate("xavier")(table).outcome == "holds"
    assert li2016_fig8.lower("orthogonal")(table).outcome == "undecided"


def test_gains_and_losses_by_depth_compare_the_two_deepest() -> None:
    errors = {110: (6.0, 6.1), 218: (5.0, 5.1), 434: (4.0, 4.1)}
    rows = [
        {"depth": depth, "shortcut": shortcut, "seed": seed, "test_error": error if shortcut == 2 else 10 - error}
        for depth, both in errors.items()
        for seed, error in enumerate(both)
        for shortcut in (2, 3)
    ]
    table = Table.from_rows(rows)
    assert li2016_fig9.gains(table).outcome == "holds"
    assert li2016_fig9.degrades(3)(table).outcome == "holds"
    assert li2016_fig9.degrades(2)(table).outcome == "fails"
    assert li2016_fig9.better_than(3)(table).outcome == "holds"
    alone = table.where(depth=434)
    assert li2016_fig9.gains(alone).outcome == "undecided"
