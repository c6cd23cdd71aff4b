"""How far a step moved the weights, against the step done by hand."""

import math
from dataclasses import replace

import pytest
import torch
from probes.moment import moment, read
from torch import nn
from torch.nn import functional as F

from leadline.probes.update_ratio import UpdateRatio


def model() -> nn.Sequential:
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2)).double()


def test_a_step_of_gradient_descent_with_decay() -> None:
    net, probe = model(), UpdateRatio()
    x, y = torch.randn(6, 3, dtype=torch.float64), torch.arange(6) % 2
    optimizer = torch.optim.SGD(net.parameters(), lr=0.3, weight_decay=0.1)
    before = probe.before(net)
    weights = [layer.weight.detach().clone() for layer in net[::2]]
    F.cross_entropy(net(x), y).backward()
    steps = [0.3 * (layer.weight.grad + 0.1 * layer.weight.detach()) for layer in net[::2]]
    optimizer.step()
    found = read(probe, replace(moment(net, x), before=before))
    wanted = [math.sqrt((step**2).sum() / (weight**2).sum()) for step, weight in zip(steps, weights, strict=True)]
    assert found["ratio"].value == pytest.approx(wanted, rel=1e-10)


def test_zero_and_broken_weights_and_no_step() -> None:
    net, probe, x = model(), UpdateRatio(), torch.randn(6, 3, dtype=torch.float64)
    with torch.no_grad():
        net[0].weight.zero_()
        net[2].weight.zero_()
    before = probe.before(net)
    with torch.no_grad():
        net[2].weight.add_(1)
        net[4].weight[0, 0] = math.nan
    found = read(probe, replace(moment(net, x), before=before))["ratio"]
    assert found.notes == {
        0: "the weights were zero and stayed so",
        1: "the weights were zero",
        2: "some of the weights are not finite",
    }
    assert math.isinf(found.value[1])
    assert read(probe, moment(net, x))["ratio"].notes == {-1: "no step was made"}
