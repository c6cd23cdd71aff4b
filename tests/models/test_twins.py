"""Twins have the same layers and the same other parameters; only the skips come or go."""

import pytest
import torch
from torch import Tensor

from leadline.core.errors import UsageError
from leadline.models import create
from leadline.models.chain import Chain
from leadline.models.densenest import DenseNEst
from leadline.models.dirac import DiracConv2d
from leadline.models.residual import Dense, Residual
from leadline.models.twins import plain_twin, residual_twin


def joints(model: Chain) -> list[Residual | Dense]:
    return [module for module in model.modules() if isinstance(module, Residual | Dense)]


def belongs_to_a_skip(name: str) -> bool:
    return "skip" in name.split(".") or name.endswith(".alpha")


def without_skips(model: Chain) -> dict[str, Tensor]:
    return {name: value for name, value in model.state_dict().items() if not belongs_to_a_skip(name)}


def same(a: dict[str, Tensor], b: dict[str, Tensor]) -> bool:
    return list(a) == list(b) and all(torch.equal(a[name], b[name]) for name in a)


def test_plain_twin(model: Chain, batch: Tensor) -> None:
    convolutions = [module for module in model.modules() if isinstance(module, DiracConv2d)]
    if not convolutions and all(joint.skip is None for joint in joints(model)):
        with pytest.raises(UsageError, match="has no skips to take away"):
            plain_twin(model)
        return
    before = {name: value.clone() for name, value in model.state_dict().items()}
    twin = plain_twin(model)
    assert same(dict(model.state_dict()), before)
    assert same(dict(twin.state_dict()), without_skips(model))
    assert all(joint.skip is None for joint in joints(twin))
    assert twin.boundary_names == model.boundary_names and twin.depth <= model.depth
    assert twin(batch).shape == model(batch).shape


def test_residual_twin(model: Chain, batch: Tensor) -> None:
    if all(joint.skip is not None for joint in joints(model)):
        with pytest.raises(UsageError, match="has a skip around every block"):
            residual_twin(model)
        return
    twin = residual_twin(model)
    theirs = {name: value for name, value in twin.state_dict().items() if "skip" not in name.split(".")}
    assert same(theirs, dict(model.state_dict()))
    assert all(joint.skip is not None for joint in joints(twin))
    assert twin(batch).shape == model(batch).shape and twin(batch).dtype == torch.float64


@pytest.mark.parametrize(("residual", "plain"), [("resnet-20", "plainnet-20"), ("preresnet-20", "preplain-20")])
def test_twins_of_named_networks_are_the_named_ones(residual: str, plain: str) -> None:
    with_skips, without = create(residual), create(plain)
    assert list(plain_twin(with_skips).state_dict()) == list(without.state_dict())
    assert list(residual_twin(without).state_dict()) == list(with_skips.state_dict())
    assert str(plain_twin(with_skips)).split("\n")[2:] == str(without).split("\n")[2:]


def test_plain_shortcut_net_keeps_its_activations_in_place() -> None:
    x = torch.randn(4, 10, dtype=torch.float64)
    model = create("shortcut-net", shortcut=3, units=2, pre="tanh", mid="relu", post="symmetric-sigmoid", init="xavier")
    model = model.double()
    for skips, net in ((1, model), (0, plain_twin(model))):
        y = x
        for r in (1, 2):
            w1, w2, w3 = (net.state_dict()[f"blocks.unit{r}.branch.linear{i}.weight"].T for i in (1, 2, 3))
            inner = ((torch.tanh(y) @ w1).relu() @ w2).relu() @ w3
            y = (1 - torch.exp(-inner)) / (1 + torch.exp(-inner)) + skips * y
        assert torch.allclose(net(x), y, atol=1e-13)


def test_the_twin_of_a_densenest_is_the_twin_of_its_resnest() -> None:
    dense = create("densenest-fc-5").double()
    assert isinstance(dense, DenseNEst)
    x = torch.randn(4, 10, dtype=torch.float64)
    assert (plain_twin(dense)(x) - plain_twin(dense.to_resnest())(x)).abs().max() <= 1e-12


def test_the_twin_of_a_dirac_kernel_is_its_w() -> None:
    model = create("diracnet-8")
    twin = plain_twin(model)
    conv = twin.blocks[0].branch.conv1
    assert torch.equal(conv.kernel, model.blocks[0].branch.conv1.weight)
