"""Tests of claims on condition numbers and ranges tell tables that support them from tables that do not."""

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch

from leadline import models
from leadline.core.table import Table
from leadline.probes import layers
from leadline.recipes import _oyedotun2021_depth_claims as claims
from leadline.recipes._oyedotun2021 import here, starts, trainings
from leadline.recipes._oyedotun2021_depth import COLUMNS, END, WEIGHTS, boundary_layers, weight_layers
from leadline.recipes._oyedotun2021_scores import COMPARING, better, learns_little
from leadline.taps.anatomy import anatomy

LAYERS = np.arange(1, 111)


def profile(net: str, kappa: Sequence[float], *, mode: str = WEIGHTS, data: str = "cifar10") -> Table:
    key = {"net": net, "data": data, "depth": 110, "seed": 0, "outcome": "finished", "when": END, "mode": mode}
    rows = [key | {"layer": layer, "kappa": value, "kept": value} for layer, value in zip(LAYERS, kappa, strict=True)]
    return Table.from_rows(rows, COLUMNS)


def wavy(rise: float) -> list[float]:
    """Numbers around a line that rises by this factor over the layers."""
    noise = np.random.default_rng(0).normal(scale=0.05, size=len(LAYERS))
    return list(2 * rise ** (LAYERS / len(LAYERS)) * np.exp(noise))


@pytest.mark.parametrize(("rise", "grows", "stays"), [(30.0, "holds", "fails"), (1.0, "fails", "holds")])
def test_what_grows_does_not_stay(rise: float, grows: str, stays: str) -> None:
    table = profile("ResNet", wavy(rise))
    assert claims.grows("ResNet")(table).outcome == grows
    assert claims.stays("ResNet")(table).outcome == stays


def test_a_claim_is_judged_by_the_data_that_supports_it_least() -> None:
    table = Table.concat([profile("ResNet", wavy(30.0)), profile("ResNet", wavy(1.0), data="mnist")])
    assert claims.grows("ResNet")(table).outcome == claims.stays("ResNet")(table).outcome == "fails"


def test_infinite_up_to_a_layer_means_every_one_up_to_it() -> None:
    kappa = np.where(LAYERS <= 70, math.inf, 10.0)
    table = profile("PlainNet", kappa.tolist(), mode="batch")
    assert claims.infinite("PlainNet", "batch", until=70)(table).outcome == "holds"
    assert claims.infinite("PlainNet", "batch", until=71)(table).outcome == "fails"
    assert claims.finite("PlainNet", "batch")(table).outcome == "fails"
    assert claims.infinite("PlainNet", "channel", until=70)(table).outcome == "undecided"


def test_infinite_exceeds_what_is_finite_and_not_the_other_way_round() -> None:
    table = Table.concat(
        [profile("PlainNet", [math.inf] * 110, mode="batch"), profile("ResNet", [9.0] * 110, mode="batch")]
    )
    assert claims.exceeds("PlainNet", "ResNet", "batch", factor=10)(table).measured == 1
    assert claims.exceeds("ResNet", "PlainNet", "batch", factor=10)(table).measured == 0


def test_a_network_that_diverged_leaves_claims_undecided() -> None:
    lost = profile("PlainNet", [math.nan] * 110)
    table = Table({name: lost[name] for name in lost} | {"outcome": ["diverged"] * lost.height})
    verdict = claims.grows("PlainNet")(table)
    assert verdict.outcome == "undecided" and "diverged" in verdict.note


@pytest.mark.parametrize("net", ["PlainNet", "ResNet", "ResNeXt"])
def test_layers_are_numbered_along_the_path(net: str) -> None:
    """Up to the head as many as the network is deep; boundaries end where a block's convolutions do."""
    (config,) = (config for config in trainings("smoke", "mnist", nets=[net]))
    model = models.create(config.model.name, in_channels=1, **config.model.args)
    found = anatomy(model, torch.zeros(4, 1, 8, 8))
    places = {"layer": [layer.name for layer in layers(model)], "boundary": [str(place) for place in found.boundaries]}
    numbers = [number for number in weight_layers(places) if number]
    assert numbers == list(range(1, 21))
    boundaries = boundary_layers(places)
    assert boundaries[0] == 1 and boundaries[-1] == 19
    step = {3 if net == "ResNeXt" else 2}
    assert {after - before for before, after in itertools.pairwise(boundaries)} == step


def test_starts_are_the_trained_networks_before_any_change() -> None:
    for config, start in zip(trainings("laptop", "mnist"), starts("laptop", "mnist"), strict=True):
        assert (start.model, start.seed, start.data.name) == (config.model, config.seed, config.data.name)
    weight = torch.nn.Parameter(torch.randn(100))
    before = weight.detach().clone()
    weight.grad = torch.full_like(weight, 1e30)
    torch.optim.SGD([weight], lr=start.optimizer.lr).step()
    assert torch.equal(weight, before), "gradients of linear networks without norm are of the order of 1e24"


def test_laptop_runs_of_photographs_are_shared() -> None:
    assert here("cifar100", "laptop") == here("cifar10", "laptop")
    assert here("cifar100-101", "laptop") == here("imagenet", "laptop") != here("cifar10", "laptop")


def scores(**accuracies: float) -> Table:
    rows = [
        {"net": net, "data": "cifar100", "seed": 0, "role": COMPARING, "outcome": "finished"}
        | {"train_accuracy": value, "test_accuracy": value}
        for net, value in accuracies.items()
    ]
    return Table.from_rows(rows)


def test_the_published_plain_networks_learned_little() -> None:
    table = scores(PlainNet=3.72, ResNet=99.84)
    assert learns_little("PlainNet")(table).measured == pytest.approx(2.72 / 98.84)
    assert learns_little("PlainNet")(scores(PlainNet=40.0, ResNet=99.84)).outcome == "fails"
    assert better("PlainNet", "ResNet")(table).outcome == "holds"
