"""x + s f(x) in float64, whichever way the blocks are written, and what it does to a deep plain net."""

from collections.abc import Callable

import pytest
import torch
from foreign import build
from torch import Tensor, nn
from torch.nn import functional as F

from leadline import models, remedies
from leadline.taps.anatomy import anatomy


class Overwrites(nn.Module):
    """A plain pre-activation block whose first act is to overwrite its input."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(5, 5), nn.Linear(5, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.two(F.relu_(self.one(F.relu_(x))))


class SharedActivation(nn.Module):
    """Single layers, a norm each, and one ReLU module for all of them."""

    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv2d(3, 3, 3, padding=1) for _ in range(5))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        for conv in self.convs:
            x = self.relu(conv(x))
        return x.mean((2, 3))


@pytest.mark.parametrize("scale", [1.0, 0.25])
def test_a_block_becomes_branch_plus_input(scale: float) -> None:
    model = models.create("plainnet-14", widths=(4, 8, 8)).double().eval()
    x = torch.randn(2, 3, 8, 8).double()
    blocks = [block for block in anatomy(model, x).blocks if block.in_shape == block.out_shape]
    parts = {block.name: model.get_submodule(block.name) for block in blocks}
    inputs = {name: torch.randn(block.in_shape).double() for name, block in zip(parts, blocks, strict=True)}
    before = {name: part(inputs[name]) for name, part in parts.items()}
    change = remedies.apply(model, "add-identity-skips", x, scale=scale)
    assert [name for name, _ in change.changed] == list(parts) and len(parts) == 4
    for name, part in parts.items():
        torch.testing.assert_close(part(inputs[name]), inputs[name] + scale * before[name], rtol=0, atol=1e-14)


def test_single_layers_are_taken_in_pairs() -> None:
    foreign = build("mlp")
    model, x = foreign.model.double(), foreign.inputs.double()
    layers = [layer for layer in model if isinstance(layer, nn.Linear)]
    change = remedies.apply(model, "add-identity-skips", x)
    h = torch.tanh(layers[0](x.flatten(1)))
    for one, two in (layers[1:3], layers[3:5]):
        h = h + torch.tanh(two(torch.tanh(one(h))))
    torch.testing.assert_close(model(x), layers[5](h), rtol=0, atol=1e-14)
    assert [name for name, _ in change.changed] == ["3 … 5", "7 … 9"]


@pytest.mark.parametrize(("gained", "start"), [(1.0, "He"), (1 / 6, "PyTorch")])
def test_branches_weigh_what_their_weights_leave(gained: float, start: str) -> None:
    torch.manual_seed(3)
    convs = [nn.Conv2d(16, 16, 3, padding=1) for _ in range(41)]
    for conv in convs:
        if start == "He":
            nn.init.kaiming_normal_(conv.weight, nonlinearity="relu")
    model = nn.Sequential(*(layer for conv in convs for layer in (conv, nn.ReLU()))).double()
    change = remedies.apply(model, "add-identity-skips", torch.randn(2, 16, 4, 4).double())
    (words,) = {words for _, words in change.changed}
    factor = float(words.removeprefix("now x + ").removesuffix(" f(x)"))
    assert len(change.changed) == 20 and factor == pytest.approx(1 / (20 * gained), rel=0.05)


def test_layers_of_one_shared_activation() -> None:
    model, x = SharedActivation().double(), torch.randn(2, 3, 6, 6).double()
    h = x
    for one, two in (model.convs[:2], model.convs[2:4]):
        h = h + F.relu(two(F.relu(one(h))))
    expected = F.relu(model.convs[4](h)).mean((2, 3))
    change = remedies.apply(model, "add-identity-skips", x, scale=1)
    assert [name for name, _ in change.changed] == ["convs.0 … convs.1", "convs.2 … convs.3"]
    torch.testing.assert_close(model(x), expected, rtol=0, atol=1e-14)


def test_the_input_is_added_as_it_was_before_the_block_overwrote_it() -> None:
    model = nn.Sequential(nn.Linear(4, 5), Overwrites(), Overwrites(), nn.Linear(5, 2)).double()
    x = torch.randn(3, 4).double()
    change = remedies.apply(model, "add-identity-skips", x, scale=1)
    assert len(change.changed) == 2
    h = model[0](x)
    for block in model[1:3]:
        h = h + block.two(F.relu(block.one(F.relu(h))))
    torch.testing.assert_close(model(x), model[3](h), rtol=0, atol=1e-14)
    model(x).sum().backward()


class Repeated(nn.Module):
    """One part called three times in a row."""

    def __init__(self, part: nn.Module) -> None:
        super().__init__()
        self.first, self.part, self.last = nn.Linear(4, 5), part, nn.Linear(5, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.tanh(self.first(x))
        for _ in range(3):
            x = self.part(x)
        return self.last(x)


def test_a_block_called_several_times_gets_its_skip_in_every_call() -> None:
    part = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 5))
    model, x = Repeated(part).double(), torch.randn(3, 4).double()
    h = torch.tanh(model.first(x))
    for _ in range(3):
        h = h + part(h)
    expected = model.last(h)
    change = remedies.apply(model, "add-identity-skips", x, scale=1)
    assert change.changed == (("part", "now x + f(x)"),)
    torch.testing.assert_close(model(x), expected, rtol=0, atol=1e-14)


def test_single_layers_called_several_times_are_left_and_said() -> None:
    change = remedies.apply(Repeated(nn.Linear(5, 5)), "add-identity-skips", torch.randn(3, 4))
    assert change.no_op
    assert "its ends are met only in modules that are called several times" in str(change)


def test_the_anatomy_sees_identity_blocks_of_length_two() -> None:
    model, x = models.create("plainnet-14", widths=(4, 8, 8)), torch.randn(2, 3, 8, 8)
    remedies.apply(model, "add-identity-skips", x)
    found = [block for block in anatomy(model, x).blocks if block.in_shape == block.out_shape]
    assert {(block.kind, block.lengths) for block in found} == {("identity", (2,))}
    again = remedies.apply(model, "add-identity-skips", x)
    assert again.no_op


def test_it_reaches_blocks_of_a_net_that_changes_the_shape_between_them() -> None:
    model = models.create("plainnet-14", widths=(4, 4, 4), norm="none").double()
    x = torch.randn(2, 3, 8, 8).double()
    remedies.apply(model, "add-identity-skips", x, scale=1)
    h = model.stem(x)
    for block in model.blocks:
        y = block.branch.act1(block.branch.conv1(h))
        y = block.branch.conv2(y)
        h = F.relu(y) + h if y.shape == h.shape else F.relu(y)
    torch.testing.assert_close(model(x), model.head(h), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("norm", "scale"), [("none", 1 / 16), ("batch", 1 / 4)])
def test_the_default_weight_of_a_branch_depends_on_norms(norm: str, scale: float) -> None:
    model = models.create("plainnet-110", widths=(2, 2, 2), norm=norm)
    for block in list(model.blocks)[16:]:
        block.skip = block.make_skip()
    change = remedies.apply(model, "add-identity-skips", torch.randn(2, 3, 8, 8))
    assert len(change.changed) == 16
    assert {words for _, words in change.changed} == {f"now x + {scale:.3g} f(x)"}


@pytest.mark.parametrize("norm", ["none", "batch"])
def test_a_plain_net_of_fifty_layers_learns(norm: str, learns: Callable[..., float], data: Tensor) -> None:
    def plain() -> nn.Module:
        torch.manual_seed(0)
        return models.create("plainnet-50", stem="mnist", norm=norm, widths=(8, 16, 32))

    model = plain()
    change = remedies.apply(model, "add-identity-skips", data[0][:4])
    assert len(change.changed) == 22
    assert learns(plain()) > 2.2
    assert learns(model) < 1.0
