"""Which parameters act last in a branch, and that the branch scales with them."""

from collections.abc import Callable
from math import isnan

import pytest
import torch
from foreign import build
from torch import Tensor, nn
from torch.nn import functional as F

from leadline import models, remedies

LAST = {
    "inplace_resnet": {"bn2.weight", "bn2.bias"},
    "preactivation": {"conv2.weight"},
    "functional_resnet": {f"{i}.{part}" for i in range(4) for part in ("weight", "bias")},
    "gpt2": {"c_proj.weight", "c_proj.bias"},
    "llama": {"o_proj.weight", "down_proj.weight"},
    "bert": {"dense.weight", "dense.bias"},
    "volumes": {"out_proj.weight", "out_proj.bias", "linear2.weight", "linear2.bias"},
    "convnext_atto": {"gamma"},
}


@pytest.mark.parametrize("name", LAST)
def test_the_last_parameters_of_every_branch_and_no_others(name: str) -> None:
    foreign = build(name)
    before = {n: p.detach().clone() for n, p in foreign.model.named_parameters()}
    change = remedies.apply(foreign.model, "near-zero-branches", foreign.inputs, factor=0.25)
    for n, parameter in foreign.model.named_parameters():
        assert torch.equal(parameter, before[n] * 0.25 if n in dict(change.changed) else before[n]), n
    parts = 1 if name == "convnext_atto" else 2
    assert {".".join(n.split(".")[-parts:]) for n, _ in change.changed} == LAST[name]


def test_the_branch_is_scaled_and_the_skip_is_not() -> None:
    foreign = build("preactivation")
    model = foreign.model.double().eval()
    xs = {1: torch.randn(2, 8, 6, 6).double(), 3: torch.randn(2, 8, 6, 6).double()}
    skips = {1: xs[1], 3: model[3].project(F.relu(model[3].bn1(xs[3])))}
    branches = {place: model[place](x) - skips[place] for place, x in xs.items()}
    remedies.apply(model, "near-zero-branches", foreign.inputs.double())
    for place, x in xs.items():
        torch.testing.assert_close(model[place](x), skips[place] + 0.01 * branches[place], rtol=0, atol=1e-13)


class Written(nn.Module):
    """A branch written with raw parameters: x + relu(x @ a) @ b + c."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = (nn.Parameter(torch.randn(shape)) for shape in ((4, 4), (4, 4), (4,)))

    def forward(self, x: Tensor) -> Tensor:
        return x + (F.relu(x @ self.a) @ self.b + self.c)


def test_layers_that_are_no_modules() -> None:
    model, x = nn.Sequential(Written(), Written(), nn.Linear(4, 2)).double(), torch.randn(3, 4).double()
    h = x
    for block in model[:2]:
        h = h + 0.01 * (F.relu(h @ block.a) @ block.b + block.c)
    expected = model[2](h)
    change = remedies.apply(model, "near-zero-branches", x)
    assert [name for name, _ in change.changed] == ["0.c", "0.b", "1.c", "1.b"]
    torch.testing.assert_close(model(x), expected, rtol=0, atol=1e-14)


def test_a_shared_branch_is_scaled_once() -> None:
    foreign = build("twice")
    before = foreign.model.shared.conv2.weight.detach().clone()
    remedies.apply(foreign.model, "near-zero-branches", foreign.inputs)
    assert torch.equal(foreign.model.shared.conv2.weight, before * 0.01)


def test_zero_is_left_out_where_it_could_never_learn() -> None:
    model = nn.Sequential(*(nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 6), nn.ReLU()) for _ in range(3)))
    x = torch.randn(4, 6)
    remedies.apply(model, "add-identity-skips", x)
    change = remedies.apply(model, "near-zero-branches", x, factor=0)
    assert change.no_op and [name for name, _ in change.left] == ["0.2", "1.2", "2.2"]
    assert "an activation follows" in str(change)
    assert remedies.apply(
        build("preactivation").model, "near-zero-branches", torch.randn(2, 3, 16, 16), factor=0
    ).changed


def test_an_exploding_residual_net_learns(learns: Callable[..., float], data: Tensor) -> None:
    def residual() -> nn.Module:
        torch.manual_seed(0)
        return models.create("resnet-38", stem="mnist", norm="none", widths=(8, 16, 32))

    model = residual()
    remedies.apply(model, "near-zero-branches", data[0][:4])
    assert isnan(learns(residual(), lr=0.01))
    assert learns(model, lr=0.01) < 1.0
