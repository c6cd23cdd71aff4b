"""Zero gains exactly where a norm ends a branch: every block starts as its skip."""

import pytest
import torch
from foreign import build
from torch import nn
from torch.nn import functional as F

from leadline import remedies


@pytest.mark.parametrize("name", ["inplace_resnet", "resnet18"])
def test_blocks_start_as_their_skips(name: str) -> None:
    foreign = build(name)
    model = foreign.model.double().eval()
    change = remedies.apply(model, "zero-last-norm", foreign.inputs.double())
    assert {words for _, words in change.changed} == {"gain 0"}
    for part in [name.rpartition(".")[0] for name, _ in change.changed]:
        block = model.get_submodule(part)
        first = block.conv1
        x = torch.randn(2, first.in_channels, 8, 8).double()
        skip = getattr(block, "skip", None) or getattr(block, "downsample", None) or nn.Identity()
        assert torch.equal(block(x), F.relu(skip(x)))


def test_the_gains_get_gradients() -> None:
    foreign = build("inplace_resnet")
    remedies.apply(foreign.model, "zero-last-norm", foreign.inputs)
    foreign.loss().backward()
    assert all(block.bn2.weight.grad.any() for block in foreign.model.blocks)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("preactivation", "no branch ends in a"),
        ("gpt2", "no branch ends in a"),
        ("mlp", "no block has a skip"),
    ],
)
def test_nets_without_such_norms_are_left_alone(name: str, reason: str) -> None:
    foreign = build(name)
    change = remedies.apply(foreign.model, "zero-last-norm", foreign.inputs)
    assert change.no_op and change.reason.startswith(reason)


def test_a_norm_behind_an_activation_is_left_and_said() -> None:
    blocks = nn.Sequential(*(nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6), nn.ReLU()) for _ in range(6)))
    remedies.apply(blocks, "add-identity-skips", torch.randn(4, 6))
    left = remedies.apply(blocks, "zero-last-norm", torch.randn(4, 6))
    assert left.no_op and [name for name, _ in left.left] == ["1.1", "3.1", "5.1"]
