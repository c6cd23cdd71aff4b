"""How weights start: variances, orthogonality, the near-zero branch, each family's default, conv*."""

import math

import pytest
import torch
from torch import nn

from leadline.models import create
from leadline.models.init import INITIALISERS, initialise
from leadline.models.layers import Transition
from leadline.models.names import families
from leadline.models.residual import Residual

VARIANCES = {
    "he-fan-in": 2 / (32 * 9),
    "he-fan-out": 2 / (48 * 9),
    "xavier": 2 / (32 * 9 + 48 * 9),
    "pytorch": 1 / (3 * 32 * 9),
}


@pytest.mark.parametrize(("name", "variance"), VARIANCES.items())
def test_variances(name: str, variance: float) -> None:
    conv = nn.Conv2d(32, 48, 3)
    initialise(conv, name)
    n = conv.weight.numel()
    assert conv.weight.var().item() == pytest.approx(variance, rel=6 * math.sqrt(2 / n))
    assert (conv.bias == 0).all() or name == "pytorch"


def test_orthogonal() -> None:
    layer = nn.Linear(20, 30)
    initialise(layer, "orthogonal")
    assert torch.allclose(layer.weight.T @ layer.weight, torch.eye(20), atol=1e-5)


def test_near_zero_shrinks_branches_only() -> None:
    torch.manual_seed(1)
    usual = create("resnet-8", init="xavier")
    torch.manual_seed(1)
    small = create("resnet-8", init="near-zero")
    ends = {id(module.branch.norm2) for module in small.modules() if isinstance(module, Residual)}
    for (name, p), (_, module), q in zip(
        usual.named_parameters(),
        [(n, small.get_submodule(n.rpartition(".")[0])) for n, _ in small.named_parameters()],
        small.parameters(),
        strict=True,
    ):
        weighs = isinstance(module, nn.Conv2d) and ".branch." in name
        ends_branch = id(module) in ends and name.endswith("weight")
        assert torch.allclose(q, p * 0.01 if weighs or ends_branch else p), name


def test_near_zero_network_is_almost_the_identity() -> None:
    x = torch.randn(50, 10)
    out = create("shortcut-net-16")(x)
    assert 0 < (out - x).norm() / x.norm() < 1e-3


@pytest.mark.parametrize("init", INITIALISERS)
@pytest.mark.parametrize("name", ["resnet-8", "shortcut-net", "procresnet-13", "diracnet-8", "densenest-fc-3"])
def test_every_family_takes_every_initialiser(name: str, init: str) -> None:
    model = create(name, init=init)
    assert model.init == init and all(p.isfinite().all() for p in model.parameters())


def test_defaults_are_the_papers() -> None:
    assert {name: family.init for name, family in families().items()} == {
        "densenest": "pytorch",
        "diracnet": "he-fan-in",
        "preresnet": "he-fan-in",
        "preresnet_basic": "pytorch",
        "procresnet": "he-fan-in",
        "resnest": "pytorch",
        "resnet": "he-fan-in",
        "resnext": "he-fan-in",
        "shortcut_net": "near-zero",
        "shortcut_resnet": "he-fan-out",
        "wrn": "pytorch",
    }
    assert create("shortcut-net-16-plain").init == "xavier"


def test_transitions_start_norm_preserving() -> None:
    """All singular values of the circular operator at sqrt(d / min(c, d)), from the transform at every frequency."""
    found = create("procresnet-13").double().transitions()
    assert list(found) == ["stem.conv", "blocks.transition2", "blocks.transition3"]
    for conv in found.values():
        d, c = conv.weight.shape[:2]
        operators = torch.fft.fft2(conv.weight.double(), s=(8, 8)).permute(2, 3, 0, 1)
        sigma = torch.linalg.svdvals(operators)
        assert torch.allclose(sigma, torch.full_like(sigma, math.sqrt(d / min(c, d))), atol=1e-6)


def test_unprojected_transitions_are_ordinary() -> None:
    model = create("procresnet-13-unprojected")
    assert model.transitions() == {} and not any(isinstance(m, Transition) for m in model.modules())
    assert list(model.state_dict()) == list(create("procresnet-13").state_dict())
