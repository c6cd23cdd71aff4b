"""The bound against full Jacobians by autograd, operation by operation and block by block; the ratio against grad."""

import math
from collections.abc import Callable
from itertools import pairwise

import pytest
import torch
from foreign import build
from probes.moment import double, foreign_moment, moment, read
from torch import Tensor, nn
from torch.autograd.functional import jacobian
from torch.nn import functional as F

from leadline import models
from leadline.probes._gains import Unbounded, gain, kernel_norm
from leadline.probes.norm_bound import NormBound
from leadline.taps.dataflow import Flow, ancestry, value_of


def bounded(function: Callable[[Tensor], Tensor], x: Tensor) -> float:
    start = x.clone().requires_grad_().clone()
    edges = value_of(start), value_of(function(start))
    return gain(Flow(ancestry(edges[1]), [edges[0]]), *edges)


def true_norm(function: Callable[[Tensor], Tensor], x: Tensor) -> float:
    matrix = jacobian(function, x).reshape(-1, x.numel())
    return float(torch.linalg.matrix_norm(matrix, 2))


def draw(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def trained(module: nn.Module) -> nn.Module:
    torch.manual_seed(2)
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    return module.double()


OPERATIONS: dict[str, tuple[Callable[[Tensor], Tensor], Tensor]] = {
    "linear": (trained(nn.Linear(4, 3)), draw(2, 4)),
    "linear without bias on sequences": (trained(nn.Linear(4, 3, bias=False)), draw(2, 3, 4)),
    "matrix from the left": (lambda x: draw(5, 4).requires_grad_() @ x, draw(4, 3)),
    "conv": (trained(nn.Conv2d(2, 3, 3, padding=1)), draw(1, 2, 4, 4)),
    "strided conv": (trained(nn.Conv2d(2, 3, 3, 2, 1)), draw(1, 2, 4, 4)),
    "grouped dilated conv": (trained(nn.Conv2d(4, 4, 3, 1, 2, 2, 2)), draw(1, 4, 5, 5)),
    "transposed conv": (trained(nn.ConvTranspose2d(2, 3, 3, 2)), draw(1, 2, 3, 3)),
    "conv 1d": (trained(nn.Conv1d(2, 3, 3)), draw(1, 2, 7)),
    "batch norm in training": (trained(nn.BatchNorm1d(3)), draw(5, 3)),
    "batch norm in evaluation": (trained(nn.BatchNorm1d(3)).eval(), draw(5, 3)),
    "layer norm": (trained(nn.LayerNorm(4)), draw(3, 4)),
    "group norm": (trained(nn.GroupNorm(2, 4)), draw(2, 4, 3)),
    "relu": (F.relu, draw(9)),
    "gelu": (F.gelu, draw(99)),
    "tanh gelu": (lambda x: F.gelu(x, approximate="tanh"), draw(99)),
    "silu": (F.silu, 3 * draw(99)),
    "mish": (F.mish, 2 * draw(99)),
    "elu": (lambda x: F.elu(x, alpha=2.0), draw(9)),
    "selu": (F.selu, draw(9)),
    "leaky relu": (lambda x: F.leaky_relu(x, 0.2), draw(9)),
    "hardswish": (F.hardswish, 3 * draw(99)),
    "sigmoid of tanh": (lambda x: torch.sigmoid(torch.tanh(x)), draw(9)),
    "sums": (lambda x: x - 2 * F.relu(x) + torch.add(x, x, alpha=3), draw(9)),
    "broadcast sum": (lambda x: x[:, :1] + draw(3, 5), draw(3, 2)),
    "scales": (lambda x: x * draw(4).requires_grad_() / torch.tensor([2.0, 4.0, 3.0, 1.5]), draw(3, 4)),
    "concatenation": (lambda x: torch.cat([x, 2 * x, x[:1]]), draw(3, 2)),
    "max pooling": (nn.MaxPool2d(3, 2, 1), draw(1, 2, 5, 5)),
    "average pooling": (nn.AvgPool2d(3, 1), draw(1, 2, 5, 5)),
    "mean": (lambda x: x.mean((1, 2)), draw(2, 3, 4)),
    "views": (lambda x: F.pad(x.transpose(0, 1).flip(0).roll(1, 0), (1, 2)).flatten()[3:], draw(3, 4)),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_no_jacobian_is_larger_than_its_bound(name: str) -> None:
    function, x = OPERATIONS[name]
    true, bound = true_norm(function, x), bounded(function, x)
    assert true <= bound * (1 + 1e-12)
    loose = {"mean": 4, "sums": 2, "average pooling": 4, "max pooling": 3, "batch norm in training": 2, "group norm": 3}
    assert bound <= true * loose.get(name, 1.6), "and the bound is of use"


def test_the_bound_of_the_corollary_itself() -> None:
    first, second, x = draw(4, 5), draw(5, 4), draw(3, 5)
    norms = torch.linalg.matrix_norm(first, 2) * torch.linalg.matrix_norm(second, 2)
    first.requires_grad_(), second.requires_grad_()
    assert bounded(lambda x: x + F.relu(F.relu(x) @ first.T) @ second.T, x) - 1 == pytest.approx(
        float(norms), rel=1e-10
    )


def test_products_of_two_values_and_unknown_operations_have_no_bound() -> None:
    with pytest.raises(Unbounded, match="both depend"):
        bounded(lambda x: x * torch.sigmoid(x), draw(3))
    with pytest.raises(Unbounded, match="no bound is known for softmax"):
        bounded(lambda x: torch.softmax(x, 0), draw(3))


@pytest.mark.parametrize("shape", [(130, 131, 3, 3), (60, 61, 3, 3, 3)])
def test_a_large_kernel_is_bounded_by_its_unfoldings(shape: tuple[int, ...]) -> None:
    kernel, dims = draw(*shape), len(shape) - 2
    bound = kernel_norm(kernel, stride=(1,) * dims, dilation=(1,) * dims, groups=1)
    x = draw(1, shape[1], *(5,) * dims)
    there, back = (F.conv2d, F.conv_transpose2d) if dims == 2 else (F.conv3d, F.conv_transpose3d)
    for _ in range(30):
        x = back(there(x, kernel, padding=1), kernel, padding=1)
        x, below = x / x.norm(), math.sqrt(float(x.norm()))
    assert below <= bound <= math.sqrt(math.prod(shape[2:])) * below


class Block(nn.Module):
    """x + W2 relu(bn(W1 relu(x)))."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(width, width, 3, padding=1), nn.Conv2d(width, width, 3, padding=1)
        self.bn = nn.BatchNorm2d(width)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv2(F.relu(self.bn(self.conv1(F.relu(x)))))


@pytest.mark.parametrize("training", [True, False])
def test_blocks_against_their_jacobians_and_gradients(training: bool) -> None:
    torch.manual_seed(0)
    blocks = [Block(2) for _ in range(3)]
    model = nn.Sequential(nn.Conv2d(3, 2, 1), *blocks, nn.Flatten(), nn.Linear(2 * 16, 4)).double().train(training)
    x, y = draw(3, 3, 4, 4), torch.tensor([0, 1, 2])
    found = read(NormBound(), moment(model, x, y, F.cross_entropy))
    h, boundaries = model[0](x), []
    for block in blocks:
        boundaries.append(h)
        delta = found["delta"].value[len(boundaries) - 1]
        matrix = jacobian(block, h.detach()).reshape(h.numel(), -1)
        assert float(torch.linalg.matrix_norm(matrix - torch.eye(len(matrix)), 2)) <= delta
        h = block(h)
    loss = F.cross_entropy(model[4:](h), y)
    norms = [float(gradient.norm()) for gradient in torch.autograd.grad(loss, [*boundaries, h])]
    ratios = [after / before for before, after in pairwise(norms)]
    assert found["ratio"].value == pytest.approx(ratios, rel=1e-10)
    assert found["deviation"].value == pytest.approx([abs(1 / ratio - 1) for ratio in ratios], rel=1e-9)
    assert all(a <= b for a, b in zip(found["deviation"].value, found["delta"].value, strict=True))
    largest = max(found["deviation"].value)
    assert found["theorem1/rate"].value == math.log(6) / 3 and found["theorem2/rate"].value == 1 / 3
    assert found["theorem1/c"].value == pytest.approx(largest * 3 / math.log(6))
    assert found["theorem2/c"].value == pytest.approx(largest * 3)
    assert found["delta"].notes[-1] == f"3 samples, {'train' if training else 'eval'} mode"


@pytest.mark.parametrize("name", ["preactivation", "inplace_resnet", "convnext_atto", "resnet-20"])
def test_every_measured_deviation_is_within_its_bound(name: str) -> None:
    if name == "resnet-20":
        torch.manual_seed(0)
        at = moment(models.create(name), torch.randn(4, 3, 32, 32), torch.arange(4), F.cross_entropy)
    else:
        at = foreign_moment(double(build(name)))
    found = read(NormBound(), at)
    for place, block in enumerate(at.anatomy.blocks):
        delta, ratio = found["delta"].value[place], found["ratio"].value[place]
        assert math.isnan(delta) == (block.kind != "identity")
        if block.kind == "identity":
            assert 1 / ratio <= (1 + delta) * (1 + 1e-6)
            assert place in found["delta"].notes or 1 / ratio >= (1 - delta) * (1 - 1e-6)


def test_what_the_corollary_does_not_cover_says_so() -> None:
    notes = {
        name: read(NormBound(), foreign_moment(build(name)))["delta"].notes for name in ("volumes", "unet", "gpt2")
    }
    assert notes["volumes"][0] == notes["unet"][0] == "it is not its input plus something, which Corollary 1 is about"
    assert notes["gpt2"][0].startswith("no bound is known for")
    without = read(NormBound(), moment(build("preactivation").model, torch.randn(2, 3, 16, 16)))
    assert without["ratio"].notes[0] == "there is no loss function" and without["delta"].value[0] > 0


class Demanding(nn.Module):
    """Sets `requires_grad` on what it is given while it is trained, as some speech models do."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Demanding.Block() for _ in range(3))

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = nn.Linear(4, 6), nn.Linear(6, 4)

        def forward(self, x: Tensor) -> Tensor:
            return x + self.two(F.relu(self.one(x)))

    def forward(self, x: Tensor) -> Tensor:
        x = x[:]
        if self.training:
            x.requires_grad = True
        for block in self.blocks:
            x = block(x)
        return x


def test_a_model_that_follows_its_inputs_itself() -> None:
    torch.manual_seed(0)
    at = moment(Demanding().double(), draw(5, 4), torch.arange(5) % 4, F.cross_entropy)
    found = read(NormBound(), at)
    assert all(value > 0 for value in found["delta"].value) and all(value > 0 for value in found["deviation"].value)
