"""conv(x) + x and x + 0.1 conv(x) with unit kernels, in float64, for every kind of convolution."""

from collections.abc import Callable

import pytest
import torch
from foreign import build
from torch import Tensor, nn

from leadline import models, remedies

CONVS = {
    "1d": (lambda: nn.Conv1d(6, 6, 5, padding=2), (6, 9)),
    "2d": (lambda: nn.Conv2d(6, 6, 3, padding=1), (6, 7, 7)),
    "grouped": (lambda: nn.Conv2d(6, 6, 3, padding=1, groups=3, bias=False), (6, 7, 7)),
    "depthwise": (lambda: nn.Conv2d(6, 6, (3, 5), padding="same", groups=6), (6, 7, 7)),
    "dilated": (lambda: nn.Conv2d(6, 6, 3, padding=2, dilation=2), (6, 9, 9)),
    "3d": (lambda: nn.Conv3d(6, 6, 3, padding=1), (6, 5, 5, 5)),
}


@pytest.mark.parametrize("kind", CONVS)
def test_a_layer_starts_as_the_explained_one(kind: str) -> None:
    make, shape = CONVS[kind]
    x = torch.randn(2, *shape).double()
    for form in ("additive", "normalised"):
        model = nn.Sequential(make(), nn.Tanh(), make()).double()
        conv, before = model[0], model[0].weight.detach().clone()
        y = conv(x)
        if form == "normalised":
            norms = before.flatten(1).norm(dim=1).view(-1, *[1] * (before.ndim - 1))
            with torch.no_grad():
                conv.weight.copy_(0.1 * before / norms)
            y = conv(x)
            with torch.no_grad():
                conv.weight.copy_(before)
        change = remedies.apply(model, "dirac-reparametrise", x, form=form)
        torch.testing.assert_close(conv(x), y + x, rtol=0, atol=1e-13)
        assert [name for name, _ in change.changed] == ["0", "2"]
        assert sum(p.numel() for p in change.parameters) == 2 * 6 * (2 if form == "normalised" else 1)
        change.undo()
        assert torch.equal(conv.weight, before) and isinstance(conv.weight, nn.Parameter)


def test_only_layers_that_keep_channels_and_size_and_have_no_skip() -> None:
    foreign = build("vgg11_bn")
    change = remedies.apply(foreign.model, "dirac-reparametrise", foreign.inputs)
    shapes = [foreign.model.get_submodule(name).weight.shape for name, _ in change.changed]
    assert len(shapes) == 4 and all(shape[0] == shape[1] for shape in shapes)
    for name in ("inplace_resnet", "preactivation", "gpt2"):
        foreign = build(name)
        assert "every block has a skip" in remedies.apply(foreign.model, "dirac-reparametrise", foreign.inputs).reason


def test_dirac_nets_have_their_kernels_already() -> None:
    model = models.create("diracnet-8", widths=(4, 4, 4))
    assert remedies.apply(model, "dirac-reparametrise", torch.randn(2, 3, 8, 8)).no_op


def test_it_agrees_with_the_dirac_nets_of_the_paper() -> None:
    torch.manual_seed(0)
    own = models.create("diracnet-8", widths=(4, 4, 4), norm="none").double()
    plain = models.create("plainnet-8", widths=(4, 4, 4), norm="none").double()
    plain.load_state_dict({name: tensor for name, tensor in own.state_dict().items() if not name.endswith("alpha")})
    x = torch.randn(2, 3, 8, 8).double()
    remedies.apply(plain, "dirac-reparametrise", x, form="additive")
    h, g = own.stem(x), plain.stem(x)
    torch.testing.assert_close(plain.blocks[0](g), own.blocks[0](h), rtol=0, atol=1e-12)


def test_a_plain_net_learns(learns: Callable[..., float], data: Tensor) -> None:
    def plain() -> nn.Module:
        torch.manual_seed(0)
        return models.create("plainnet-38", stem="mnist", norm="none", widths=(8, 16, 32))

    model = plain()
    remedies.apply(model, "dirac-reparametrise", data[0][:4])
    assert learns(plain(), lr=0.01) > 2.2
    assert learns(model, lr=0.01) < 1.2
