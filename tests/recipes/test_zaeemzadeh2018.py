"""What the recipes of Zaeemzadeh et al. share: names, trainings, claims by depth; their studies beside other routes."""

import math

import pytest
import torch
from recipes.conftest import Smoke
from torch.nn import functional

import leadline as ll
from leadline.analysis.claims import SCALES
from leadline.core.config import RunConfig, Scale
from leadline.core.table import Table
from leadline.data import Batches, load
from leadline.linalg.conv_operator import conv_operator
from leadline.models import create
from leadline.models.init import initialise
from leadline.recipes import load as recipe
from leadline.recipes._conv_relu_nets import Net, Training
from leadline.recipes._stem_fault import backward, taps
from leadline.recipes._zaeemzadeh2018 import NETS, at_every_depth, model_name, net_and_depth, training
from leadline.recipes.zaeemzadeh2018_fig4 import jumps
from leadline.recipes.zaeemzadeh2018_table2 import EXACT

NAMES = ("fig3", "fig4", "table1")


def identities(name: str, scale: Scale) -> set[str]:
    return {unit.identity for unit in recipe(f"zaeemzadeh2018_{name}").runs(scale)}


@pytest.mark.parametrize("net", NETS)
def test_a_training_says_which_net_it_is(net: str) -> None:
    for depth in (20, 164):
        config = training(net, depth, 0, "smoke")
        assert net_and_depth(config) == (net, depth)
        assert (config.projection is not None) == ("procresnet" in net)


def test_what_is_watched_and_what_is_tabled_is_trained_once_below_the_papers_scale() -> None:
    for scale in SCALES[:2]:
        watched = [identities(name, scale) for name in NAMES]
        assert watched[0] == watched[1] == watched[2]
        for name in ("table2", "table3"):
            shared = identities(name, scale) & watched[0]
            own = [unit for unit in recipe(f"zaeemzadeh2018_{name}").runs(scale) if unit.identity in shared]
            nets = {net_and_depth(unit)[0] for unit in own if isinstance(unit, RunConfig)}
            assert nets == {"resnet", "procresnet"}


def test_at_the_papers_scale_schedules_data_and_seeds_are_the_papers() -> None:
    watched = [unit for unit in recipe("zaeemzadeh2018_table1").runs("paper") if isinstance(unit, RunConfig)]
    assert len(watched) == 90 and {unit.seed for unit in watched} == set(range(10))
    assert {(unit.training.epochs, unit.schedule.name, unit.optimizer.lr) for unit in watched} == {
        (100, "constant", 0.1)
    }
    tabled = [unit for unit in recipe("zaeemzadeh2018_table2").runs("paper") if isinstance(unit, RunConfig)]
    assert {unit.data.name for unit in tabled} == {"cifar10", "cifar100"}
    assert {(unit.training.epochs, unit.schedule.milestones, unit.data.batch_size) for unit in tabled} == {
        (300, (150, 225), 128)
    }
    assert {unit.model.args.get("widths") for unit in (*watched, *tabled)} == {None}


def test_a_claim_about_every_depth_fails_at_one_and_holds_at_all() -> None:
    def said(second: dict[int, list[float]]) -> str:
        rows = [
            {"net": net, "depth": depth, "seed": seed, "gap": value}
            for net, values in (("procresnet", {20: [1.0, 1.1], 83: [2.0, 2.1]}), ("resnet", second))
            for depth, found in values.items()
            for seed, value in enumerate(found)
        ]
        return at_every_depth(Table.from_rows(rows), "gap", "procresnet", "resnet", of="gap").outcome

    assert said({20: [3.0, 3.1], 83: [4.0, 4.1]}) == "holds"
    assert said({20: [3.0, 3.1], 83: [1.0, 1.1]}) == "fails"
    assert said({20: [3.0, 3.1], 83: [2.0, 2.15]}) == "undecided"
    assert said({20: [3.0, 3.1], 83: [math.nan, math.nan]}) == "undecided"
    assert said({164: [3.0, 3.1]}) == "undecided"


def test_a_straight_fall_is_no_jump() -> None:
    assert jumps([90.0, 80.0, 70.0, 60.0]) == 0
    assert jumps([50.0, 60.0, 50.0, 60.0]) == 10
    assert math.isnan(jumps([1.0, 2.0]))


def test_parameters_are_exact_at_every_scale(smoke: Smoke) -> None:
    for net, depth, data in EXACT:
        if depth == 164:
            with torch.device("meta"):
                built = create(model_name(net, depth), num_classes=10 if data == "cifar10" else 100)
            assert sum(each.numel() for each in built.parameters()) == EXACT[net, depth, data]
    outcomes = {claim.text: verdict for claim, verdict in smoke.made("zaeemzadeh2018_table2").verdicts}
    exact = next(verdict for text, verdict in outcomes.items() if "those of the layers described" in text)
    assert exact.outcome == "holds" and exact.measured == 0


def test_ratios_of_the_stem_study_are_those_of_the_probe() -> None:
    torch.manual_seed(3)
    model = create("procresnet-22", widths=[2, 4, 8]).double()
    images, targets = torch.randn(6, 3, 8, 8, dtype=torch.float64), torch.randint(10, (6,))
    ratio, loss = backward(model, images, targets)
    profile = ll.sound(
        model,
        (images.clone().requires_grad_(), targets),
        functional.cross_entropy,
        probes=["gradient_norm_ratio(stem=true)"],
    )
    assert ratio[0] == pytest.approx(float(profile["gradient_norm_ratio/ratio/stem"].item()), rel=1e-9)
    assert ratio[1:] == pytest.approx(profile["gradient_norm_ratio/ratio"].tolist(), rel=1e-9)
    assert loss == pytest.approx(float(functional.cross_entropy(model(images), targets).detach()))
    assert sum(value**2 for value in taps(model)) == pytest.approx(
        float(next(iter(model.transitions().values())).weight.detach().square().sum())
    )


def test_the_projected_convolution_has_the_singular_values_asked_for() -> None:
    digits = load("digits", train=64)
    spreads = []
    for every in (1, 0):
        torch.manual_seed(0)
        net = Net(1, 2, 32, 10)
        initialise(net, "he-fan-in")
        Training(net, rate=0.01, every=every, grid=8).epoch(Batches(digits.train, batch_size=16), 0)
        kernel = net.middle.weight.detach()
        values = conv_operator(kernel, 8, padding=1, padding_mode="circular").spectrum().values
        spreads.append(float((values / math.sqrt(2 * 32 / 2) - 1).abs().max()))
    assert spreads[0] < 0.25 < spreads[1]
