"""Singular values of the dense operators of transitions, at the start and while an optimiser trains them."""

from collections.abc import Callable

import pytest
import torch
from foreign import build
from torch import Tensor, nn

from leadline import models, remedies

SITES = {
    "resnet18": ["layer2.0.downsample.0", "layer3.0.downsample.0", "layer4.0.downsample.0"],
    "inplace_resnet": ["blocks.2.skip"],
    "preactivation": ["3.project"],
    "two_heads": ["body.2.project"],
    "swin_t": ["features.2.reduction", "features.4.reduction", "features.6.reduction"],
    "convnext_atto": ["stages.1.downsample.1", "stages.2.downsample.1", "stages.3.downsample.1"],
}


def operator(layer: nn.Module, size: int = 4) -> Tensor:
    """The dense matrix of a layer without its bias, by differentiating it."""
    shape = (layer.in_features,) if isinstance(layer, nn.Linear) else (layer.in_channels, size, size)
    dense = torch.autograd.functional.jacobian(lambda x: layer(x[None])[0], torch.zeros(shape).double())
    return dense.reshape(-1, torch.Size(shape).numel())


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n == "swin_t" else n for n in SITES])
def test_all_singular_values_of_every_transition_are_equal(name: str) -> None:
    foreign = build(name)
    change = remedies.apply(foreign.model, "procrustes-transitions", foreign.inputs)
    assert [name for name, _ in change.changed] == SITES[name]
    for site in SITES[name][:2]:
        layer = foreign.model.get_submodule(site)
        d, c = layer.weight.shape[0], layer.weight[0].numel()
        if d * c > 2**15:
            continue
        dense = operator(layer.double())
        sigma = torch.linalg.svdvals(dense)
        rank = len(dense) // d * min(c, d)
        torch.testing.assert_close(
            sigma[:rank], torch.full_like(sigma[:rank], (d / min(c, d)) ** 0.5), rtol=1e-5, atol=0
        )
        assert not (sigma[rank:] > 1e-6).any()


def test_the_nearest_such_weight_is_taken() -> None:
    foreign = build("preactivation")
    model = foreign.model.double()
    before = model[3].project.weight.detach()[:, :, 0, 0].clone()
    remedies.apply(model, "procrustes-transitions", foreign.inputs.double())
    left, _, right = torch.linalg.svd(before, full_matrices=False)
    torch.testing.assert_close(model[3].project.weight[:, :, 0, 0], 2**0.5 * left @ right, rtol=0, atol=1e-12)


def test_the_expected_norm_of_the_gradient_is_kept() -> None:
    foreign = build("preactivation")
    remedies.apply(foreign.model, "procrustes-transitions", foreign.inputs)
    x = torch.randn(4, 8, 32, 32, requires_grad=True)
    y = foreign.model[3].project(x)
    gradient = torch.randn_like(y)
    (back,) = torch.autograd.grad(y, x, gradient)
    assert (back.norm() / gradient.norm()).item() == pytest.approx(1, abs=0.03)


@pytest.mark.parametrize("every", [1, 3])
def test_the_optimiser_keeps_them_there(every: int) -> None:
    foreign = build("preactivation")
    optimizer = torch.optim.SGD(foreign.model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.1)
    change = remedies.apply(foreign.model, "procrustes-transitions", foreign.inputs, optimizer, every=every)
    assert ("kept there after each step" if every == 1 else "kept there after every 3 steps") in str(change)
    weight = foreign.model[3].project.weight
    off = []
    for _ in range(6):
        optimizer.zero_grad()
        foreign.loss().backward()
        optimizer.step()
        off.append(float((torch.linalg.svdvals(weight.detach()[:, :, 0, 0].double()) / 2**0.5 - 1).abs().max()))
    assert [value < 1e-5 for value in off] == [step % every == 0 for step in range(1, 7)]
    change.undo()
    optimizer.step()
    assert (torch.linalg.svdvals(weight.detach()[:, :, 0, 0]) / 2**0.5 - 1).abs().max() > 1e-3


def test_a_norm_behind_a_transition_is_said() -> None:
    foreign = build("resnet18")
    assert "a norm behind it sets the scale" in str(
        remedies.apply(foreign.model, "procrustes-transitions", foreign.inputs)
    )
    foreign = build("preactivation")
    assert "a norm" not in str(remedies.apply(foreign.model, "procrustes-transitions", foreign.inputs))


def test_what_cannot_be_projected_is_left_and_said() -> None:
    class Block(nn.Module):
        def __init__(self, kernel: int) -> None:
            super().__init__()
            self.branch, self.skip = nn.Conv2d(4, 8, 3, 2, 1), nn.Conv2d(4, 8, kernel, 2, kernel // 2)

        def forward(self, x: Tensor) -> Tensor:
            return self.skip(x) + self.branch(x).tanh()

    def left(model: nn.Module) -> str:
        change = remedies.apply(model, "procrustes-transitions", torch.randn(2, 4, 8, 8))
        assert change.no_op
        return str(change)

    assert "skip: its patches overlap" in left(nn.Sequential(Block(3)))
    zero = Block(1)
    nn.init.zeros_(zero.skip.weight)
    assert "skip: its weights are zero" in left(nn.Sequential(zero))
    computed = Block(1)
    nn.utils.parametrizations.weight_norm(computed.skip)
    assert "skip: its weight is computed from other parameters" in left(nn.Sequential(computed))


def test_transitions_that_preserve_norms_already_are_left_alone() -> None:
    model = models.create("procresnet-13", widths=(4, 8, 8))
    change = remedies.apply(model, "procrustes-transitions", torch.randn(2, 3, 8, 8))
    assert change.no_op and change.reason == "its transitions preserve norms already"


@pytest.mark.parametrize("scale", [30.0, 0.01])
def test_a_net_with_badly_scaled_transitions_learns(scale: float, learns: Callable[..., float], data: Tensor) -> None:
    def badly_scaled() -> nn.Module:
        torch.manual_seed(0)
        model = models.create("resnet-20", stem="mnist", norm="none", init="near-zero", widths=(8, 16, 32))
        with torch.no_grad():
            for block in model.blocks:
                if block.kind == "transition":
                    block.skip.conv.weight.mul_(scale)
        return model

    model = badly_scaled()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    remedies.apply(model, "procrustes-transitions", data[0][:4], optimizer)
    before = learns(badly_scaled())
    assert not before < 2.25
    assert learns(model, optimizer) < 2.0
