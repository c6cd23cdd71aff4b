"""Convolutions and norms with closed second derivatives against torch's own, in every geometry and mode."""

from collections.abc import Callable
from contextlib import nullcontext

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from leadline.linalg.hessian import curvature_graph, dense, gauss_newton_operator, hessian_operator
from leadline.linalg.second_order import SecondOrder

NETS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "plain": (lambda: nn.Conv2d(2, 3, 3), (4, 2, 5, 5)),
    "stride, groups, no bias": (lambda: nn.Conv2d(2, 4, 3, stride=2, padding=1, groups=2, bias=False), (4, 2, 6, 5)),
    "dilation": (lambda: nn.Conv2d(2, 3, 3, dilation=2, padding=2), (3, 2, 5, 5)),
    "1-d": (lambda: nn.Conv1d(2, 3, 3, stride=2), (4, 2, 9)),
    "3-d": (lambda: nn.Conv3d(1, 2, 2), (3, 1, 3, 3, 3)),
    "same": (lambda: nn.Conv2d(2, 3, 3, padding="same"), (3, 2, 4, 4)),
    "circular": (lambda: nn.Conv2d(2, 3, 3, padding=1, padding_mode="circular"), (3, 2, 4, 4)),
    "norm on vectors": (lambda: nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)), (6, 3)),
    "norm on images": (lambda: nn.Sequential(nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3)), (4, 2, 3, 3)),
    "norm without weights": (lambda: nn.Sequential(nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3, affine=False)), (4, 2, 3, 3)),
    "norm without statistics": (
        lambda: nn.Sequential(nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3, track_running_stats=False)),
        (4, 2, 3, 3),
    ),
    "norm first": (lambda: nn.Sequential(nn.BatchNorm2d(2), nn.Conv2d(2, 3, 2)), (4, 2, 3, 3)),
    "deep": (
        lambda: nn.Sequential(
            nn.Conv2d(2, 3, 3, padding=1), nn.BatchNorm2d(3), nn.Tanh(), nn.Conv2d(3, 3, 3, stride=2), nn.BatchNorm2d(3)
        ),
        (5, 2, 5, 5),
    ),
}


def build(name: str) -> tuple[nn.Module, Tensor]:
    make, shape = NETS[name]
    net, x = make().double(), torch.randn(shape, dtype=torch.float64)
    for module in net.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.running_mean is not None:
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)  # type: ignore[union-attr, operator]
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.affine:
            nn.init.normal_(module.weight)
    return net, x


def loss_of(outputs: Tensor) -> Tensor:
    flat = torch.tanh(outputs.flatten(1))
    return ((flat - 0.3) ** 4).sum() + flat.prod(1).sum()


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", NETS)
def test_hessian_and_gradient_are_torchs(name: str, training: bool) -> None:
    net, x = build(name)
    net.train(training)
    params = list(net.parameters())
    found = {}
    for own in (True, False):
        with SecondOrder() if own else nullcontext():
            loss = loss_of(net(x))
        slope = torch.autograd.grad(loss, params, retain_graph=True)
        operator = hessian_operator(loss, params)
        unit = torch.ones(operator.size, dtype=torch.float64)
        found[own] = (loss.detach(), *slope, operator(unit), dense(operator))
    for ours, theirs in zip(found[True], found[False], strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(
    "frozen", [["0.weight"], ["0.bias"], ["3.weight", "3.bias"], ["1.weight"], ["0.weight", "0.bias"]]
)
def test_frozen_parameters(frozen: list[str]) -> None:
    net, x = build("deep")
    for name in frozen:
        net.get_parameter(name).requires_grad_(False)
    params = [p for p in net.parameters() if p.requires_grad]
    x.requires_grad_(frozen == ["0.bias"])
    with SecondOrder():
        ours = dense(hessian_operator(loss_of(net(x)), params))
    assert torch.allclose(ours, dense(hessian_operator(loss_of(net(x)), params)), atol=1e-10)


def test_gauss_newton_through_the_same_graph() -> None:
    net, x = build("deep")
    params = list(net.parameters())
    found = []
    for context in (SecondOrder(), nullcontext()):
        with context:
            outputs = net(x)
        found.append(dense(gauss_newton_operator(loss_of(outputs), outputs, params)))
    assert torch.allclose(*found, atol=1e-10)


@pytest.mark.parametrize("training", [True, False])
def test_the_graph_of_a_model_moves_nothing_and_states_its_mode(training: bool) -> None:
    net, x = build("deep")
    net.train(training)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    random = torch.get_rng_state()
    with curvature_graph(net) as mode:
        loss = loss_of(net(x))
    operator = hessian_operator(loss, list(net.parameters()), mode=mode)
    operator(torch.ones(operator.size))
    assert operator.mode == ("train" if training else "eval") and net.training is training
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert torch.equal(torch.get_rng_state(), random)


def test_channels_last_and_single_precision() -> None:
    net, x = build("deep")
    exact = hessian_operator(loss_of(net(x)), list(net.parameters()))
    vector = torch.randn(exact.size, dtype=torch.float64)
    expected = exact(vector)
    net = net.float().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    with SecondOrder():
        loss = loss_of(net(x.float().contiguous(memory_format=torch.channels_last)))
    single = hessian_operator(loss, list(net.parameters()))(vector)
    assert float((single - expected).norm() / expected.norm()) < 1e-4


def test_without_gradients_and_under_autocast_it_stands_aside() -> None:
    net, x = build("deep")
    with SecondOrder(), torch.no_grad():
        assert not net(x).requires_grad
    with SecondOrder(), torch.autocast("cpu", dtype=torch.bfloat16):
        outputs = F.conv2d(x.float(), torch.ones(1, 2, 2, 2, requires_grad=True))
    assert outputs.dtype == torch.bfloat16 and "Conv" in type(outputs.grad_fn).__name__
