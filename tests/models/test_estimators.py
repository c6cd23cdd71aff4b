"""ResNEst, A-ResNEst, DenseNEst: eq. (2), eq. (4), Prop. 4, weights by name, bottleneck condition and rank."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from leadline.models import create
from leadline.models.chain import Input
from leadline.models.densenest import DenseNEst
from leadline.models.estimators import AugmentedResNEst, ResNEst, resnest
from leadline.models.linear_maps import bottleneck_condition

EXACT = 1e-12
GENERAL = [
    ("resnest-fc-8", {}),
    ("resnest-fc-8", {"block": "basic"}),
    ("resnest-fc-8", {"features": (4, 3, 2), "width": 5, "activation": "tanh"}),
    ("resnest-fc-30", {"features": 2}),
    ("resnest-conv-8", {}),
    ("resnest-conv-8", {"block": "basic", "width": 7}),
    ("resnest-conv-10", {"features": (5, 1, 3, 2), "in_channels": 1}),
]
STAGED = ["resnest-preresnet-basic-8", "resnest-preresnet-basic-20", "resnest-wrn-10-1", "resnest-wrn-16-1"]


def example(model: ResNEst | AugmentedResNEst | DenseNEst) -> Tensor:
    channels, *size = model.input_shape
    return torch.randn(5, channels, *[8 for _ in size], dtype=torch.float64)


def gap(a: Tensor, b: Tensor) -> float:
    return float((a - b).detach().abs().max())


@pytest.mark.parametrize(("name", "options"), GENERAL)
def test_equation_2(name: str, options: dict[str, object]) -> None:
    """output = W_{L+1} sum_i W_i v_i, with the features computed block by block and the matrices taken by hand."""
    model = create(name, **options).double()
    assert isinstance(model, ResNEst)
    x = example(model)
    features = list(model.features(x).values())
    maps = [model.stem, *(block.branch.last for block in model.blocks)]
    total = sum(
        torch.einsum("mk,bk...->bm...", layer.weight.flatten(1), v) for layer, v in zip(maps, features, strict=True)
    )
    by_hand = total @ model.head.weight.T if x.dim() == 2 else total.mean((2, 3)) @ model.head.linear.weight.T
    by_hand = by_hand if x.dim() == 2 else by_hand + model.head.linear.bias
    assert gap(model(x), by_hand) <= EXACT
    assert gap(model(x), model.expanded(x)) <= EXACT
    assert list(model.features(x)) == [f"v{i}" for i in range(len(model.blocks) + 1)]


@pytest.mark.parametrize("name", STAGED)
@pytest.mark.parametrize("prefix", ["", "bn-"])
def test_equation_2_from_the_last_change_of_shape(name: str, prefix: str) -> None:
    model = create(prefix + name).double().eval()
    assert isinstance(model, ResNEst)
    x = example(model)
    assert gap(model(x), model.expanded(x)) <= EXACT
    first, *rest = model.terms(x)
    assert first.startswith("z") and all(term.startswith("v") for term in rest)
    assert len(rest) == len(model.blocks) // 3


def test_a_standard_network_is_not_linear_in_its_features() -> None:
    """The last norm and ReLU between sum W_i v_i and W_{L+1} are what ResNEsts drop."""
    model = create("preresnet-basic-8")
    assert not isinstance(model, ResNEst)
    assert [name for name, _ in model.head.named_children()] == ["norm", "act", "pool", "flatten", "linear"]


@pytest.mark.parametrize(("name", "options"), [*GENERAL, *((name, {}) for name in STAGED)])
def test_augmented_has_the_same_features(name: str, options: dict[str, object]) -> None:
    """The A-ResNEst is sum_i H_i v_i on exactly the features of the ResNEst it augments."""
    model = create(name, **options).double().eval()
    assert isinstance(model, ResNEst)
    augmented = model.augmented().double().eval()
    x = example(model)
    ours, theirs = augmented.features(x), model.features(x)
    assert list(ours) == list(theirs)
    assert all(gap(ours[key], theirs[key]) <= EXACT for key in ours)
    flat = [v if v.dim() == 2 else v.mean((2, 3)) for v in ours.values()]
    heads = [next(m for m in head.modules() if isinstance(m, nn.Linear)) for head in augmented.heads.values()]
    by_hand = sum(nn.functional.linear(v, head.weight, head.bias) for v, head in zip(flat, heads, strict=True))
    assert gap(augmented(x), by_hand) <= EXACT


def test_augmenting_copies() -> None:
    model = create("resnest-fc-8")
    assert isinstance(model, ResNEst)
    augmented = model.augmented()
    with torch.no_grad():
        augmented.stem.weight.zero_()
    assert model.stem.weight.any() and not any(block.tapped for block in model.blocks)


@pytest.mark.parametrize(
    "name", ["resnest-fc-8", "resnest-wrn-10-1", "a-resnest-fc-8", "a-resnest-wrn-10-1", "densenest-conv-5"]
)
def test_weights_are_of_two_kinds(name: str) -> None:
    """Prediction weights and feature-finding weights are all weights; changing the former changes no feature."""
    model = create(name).double().eval()
    prediction, finding = model.prediction_weights(), model.feature_finding_weights()
    assert {**prediction, **finding} == dict(model.named_parameters()) and not prediction.keys() & finding.keys()
    x = example(model)
    before, output = model.features(x), model(x)
    with torch.no_grad():
        for weight in prediction.values():
            weight.add_(1)
    assert all(torch.equal(v, before[key]) for key, v in model.features(x).items())
    assert gap(model(x), output) > 1e-3
    last = list(before)[-1]
    for name, weight in finding.items():
        (gradient,) = torch.autograd.grad(sum(v.sum() for v in model.features(x).values()), weight, allow_unused=True)
        assert gradient is not None, f"{name} finds no feature up to {last}"


def test_prediction_weights_are_those_of_the_paper() -> None:
    assert list(create("resnest-fc-8").prediction_weights()) == ["blocks.block3.branch.last.weight", "head.weight"]
    assert list(create("a-resnest-fc-8").prediction_weights()) == [f"head.H{i}.weight" for i in range(4)]
    assert list(create("densenest-fc-5").prediction_weights()) == ["head.weight"]


@pytest.mark.parametrize(("width", "holds"), [(3, False), (6, False), (8, False), (9, True), (12, True)])
def test_bottleneck_condition_and_rank(width: int, holds: bool) -> None:
    """K = 2, 4, 3, 2: sum_{i<3} K_i = 9, and random columns are independent as soon as there is room."""
    model = create("resnest-fc-8", in_channels=2, features=(4, 3, 2), width=width)
    report = model.bottleneck()
    assert (report.width, report.sizes, report.needed, report.holds) == (width, (2, 4, 3), 9, holds)
    stacked = torch.cat([model.stem.weight, *(block.branch.last.weight for block in model.blocks[:-1])], dim=1)
    assert report.rank == np.linalg.matrix_rank(stacked.detach().numpy()) == min(width, 9)
    assert report.unique == holds
    assert f"M = {width} {'>=' if holds else '<'} sum K_i = 9" in str(report)


def test_wide_enough_is_not_enough() -> None:
    """M >= sum K_i with dependent columns: the condition holds and Assumption 4 fails."""
    model = create("resnest-fc-8", in_channels=2, features=(4, 3, 2), width=12)
    with torch.no_grad():
        model.blocks[0].branch.last.weight[:, 0] = model.stem.weight[:, 1]
    report = model.bottleneck()
    assert report.holds and not report.unique and report.rank == 8
    assert str(report).endswith("rank 8 of 9: Assumption 4 fails")


def test_published_networks_fail_the_condition() -> None:
    for name in ("resnest-wrn-16-1", "a-resnest-wrn-16-1", "bn-resnest-preresnet-basic-20"):
        assert not create(name).bottleneck().holds


def test_any_functions_make_a_resnest() -> None:
    """G_i of different kinds: two layers with tanh, a product of the input with itself, a constant."""

    class Square(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x[:, :2] * x[:, 1:3]

    functions = [nn.Sequential(nn.Linear(9, 5), nn.Tanh(), nn.Linear(5, 3)), Square(), nn.Sequential(nn.Linear(9, 1))]
    model = resnest(functions, (3, 2, 1), width=9, outputs=2, takes=Input(channels=4)).double()
    x = example(model)
    assert gap(model(x), model.expanded(x)) <= EXACT
    assert model.bottleneck().sizes == (4, 3, 2) and model.augmented().double()(x).shape == (5, 2)


DENSE = [
    ("densenest-fc-5", {}),
    ("densenest-fc-5", {"features": (3, 1, 4, 2), "activation": "tanh", "in_channels": 6}),
    ("densenest-fc-21", {"features": 2}),
    ("densenest-conv-5", {}),
    ("densenest-conv-4", {"features": (2, 5, 1), "in_channels": 1}),
]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("name", "options"), DENSE)
def test_proposition_4(name: str, options: dict[str, object], seed: int) -> None:
    torch.manual_seed(seed)
    dense = create(name, init="xavier", **options).double()
    assert isinstance(dense, DenseNEst)
    wide, x = dense.to_resnest(), example(dense)
    assert gap(dense(x), wide(x)) <= EXACT
    assert gap(wide(x), wide.expanded(x)) <= EXACT
    theirs = dense.features(x)
    assert all(gap(v, theirs[key]) <= EXACT for key, v in wide.features(x).items())
    report = wide.bottleneck()
    assert report.holds and report.unique
    assert str(dense.bottleneck()) == str(report)


def test_to_resnest_copies_and_keeps_kind() -> None:
    dense = create("densenest-fc-5").double().eval()
    wide = dense.to_resnest()
    assert wide.stem.weight.dtype == torch.float64 and not wide.training
    with torch.no_grad():
        wide.head.weight.zero_()
    assert dense.head.weight.any()


def test_rank_has_the_tolerance_of_the_dtype() -> None:
    """A direction lost to single precision counts as lost there and as kept in double."""
    weight = torch.diag(torch.tensor([1.0, 1.0, 1e-9], dtype=torch.float64))
    for dtype, rank in ((torch.float32, 2), (torch.float64, 3)):
        layer = nn.Linear(3, 3, bias=False).to(dtype)
        layer.weight.data = weight.to(dtype)
        assert bottleneck_condition([layer]).rank == rank
