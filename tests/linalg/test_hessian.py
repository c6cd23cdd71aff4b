"""Exact Hessians: dense and by products against torch's slow functional Hessian, and what they leave alone."""

import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from leadline.core.errors import UsageError
from leadline.linalg.hessian import (
    dense,
    dense_hessian,
    gauss_newton_operator,
    hessian_blocks,
    hessian_operator,
    spectrum,
    untouched_buffers,
)


class Net(nn.Module):
    """A small residual convolutional net with batch norm, made for these tests."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(2, 3, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(3)
        self.branch = nn.Conv2d(3, 3, 3, padding=1, groups=3)
        self.head = nn.Linear(3, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(self.stem(x))
        return self.head((x + torch.tanh(self.branch(x))).mean((2, 3)))


@pytest.fixture
def problem() -> tuple[Net, Tensor, Tensor]:
    return Net().double(), torch.randn(6, 2, 5, 5, dtype=torch.float64), torch.randint(4, (6,))


def slow_hessian(net: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """torch.autograd.functional.hessian over the flattened parameters, buffers as they are."""
    names, sizes = zip(*((name, p.shape) for name, p in net.named_parameters()), strict=True)
    buffers = {name: b.clone() for name, b in net.named_buffers()}

    def loss(flat: Tensor) -> Tensor:
        parts = [part.reshape(size) for part, size in zip(flat.split([s.numel() for s in sizes]), sizes, strict=True)]
        state = {**dict(zip(names, parts, strict=True)), **{name: b.clone() for name, b in buffers.items()}}
        return F.cross_entropy(torch.func.functional_call(net, state, (x,)), y)

    flat = torch.cat([p.detach().flatten() for p in net.parameters()])
    result = torch.autograd.functional.hessian(loss, flat)
    assert isinstance(result, Tensor)
    return result


@pytest.mark.parametrize("mode", ["train", "eval"])
def test_products_match_the_slow_hessian_and_leave_the_model_alone(
    problem: tuple[Net, Tensor, Tensor], mode: str
) -> None:
    net, x, y = problem
    net.norm.running_mean += 0.3  # type: ignore[operator]
    net.train(mode == "train")
    before = {name: value.clone() for name, value in net.state_dict().items()}
    owners = {name: id(b) for name, b in net.named_buffers()}
    with untouched_buffers(net) as stated:
        loss = F.cross_entropy(net(x), y)
    operator = hessian_operator(loss, list(net.parameters()), mode=stated)
    expected = slow_hessian(net, x, y)
    vectors = torch.randn(3, operator.size, dtype=torch.float64)
    assert operator.mode == mode
    assert torch.allclose(operator(vectors[0]), expected @ vectors[0], atol=1e-12)
    assert torch.allclose(operator(vectors), vectors @ expected, atol=1e-12)
    assert torch.allclose(dense(operator, chunk=50), expected, atol=1e-12)
    assert {name: id(b) for name, b in net.named_buffers()} == owners
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert all(p.grad is None for p in net.parameters())


def test_train_and_eval_mode_are_different_hessians(problem: tuple[Net, Tensor, Tensor]) -> None:
    net, x, y = problem
    found = {}
    for mode in (True, False):
        net.train(mode)
        with untouched_buffers(net):
            found[mode] = dense(hessian_operator(F.cross_entropy(net(x), y), list(net.parameters())))
    assert not torch.allclose(found[True], found[False], rtol=0.1)
    net.branch.eval()
    net.norm.train()
    with untouched_buffers(net) as stated:
        assert stated == "mixed"


def test_buffers_come_back_after_an_error(problem: tuple[Net, Tensor, Tensor]) -> None:
    net, x, _ = problem
    before = net.norm.running_mean
    with pytest.raises(ZeroDivisionError), untouched_buffers(net):
        net(x)
        raise ZeroDivisionError
    assert net.norm.running_mean is before and not before.any()  # type: ignore[union-attr]


def test_blocks_are_the_diagonal_blocks(problem: tuple[Net, Tensor, Tensor]) -> None:
    net, x, y = problem
    net.eval()
    expected = slow_hessian(net, x, y)
    loss = F.cross_entropy(net(x), y)
    groups = {"stem": [*net.stem.parameters(), *net.norm.parameters()], "head": list(net.head.parameters())}
    blocks = hessian_blocks(loss, groups)
    stem, head = blocks["stem"].size, blocks["head"].size
    assert torch.allclose(dense(blocks["stem"]), expected[:stem, :stem], atol=1e-12)
    assert torch.allclose(dense(blocks["head"]), expected[-head:, -head:], atol=1e-12)


def test_gauss_newton_is_jacobian_curvature_jacobian(problem: tuple[Net, Tensor, Tensor]) -> None:
    net, x, y = problem
    net.eval()
    outputs = net(x)
    operator = gauss_newton_operator(F.cross_entropy(outputs, y), outputs, list(net.parameters()))
    rows = [torch.autograd.grad(value, list(net.parameters()), retain_graph=True) for value in outputs.flatten()]
    jacobian = torch.stack([torch.cat([part.flatten() for part in row]) for row in rows])
    share = outputs.detach().softmax(1)
    blocks = [(torch.diag(p) - torch.outer(p, p)) / len(x) for p in share]
    expected = jacobian.T @ torch.block_diag(*blocks) @ jacobian
    assert operator.kind == "gauss-newton"
    assert torch.allclose(dense(operator), expected, atol=1e-12)
    assert float(torch.linalg.eigvalsh(dense(operator))[0]) > -1e-12


def test_hessian_is_gauss_newton_for_a_linear_model() -> None:
    weight = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    outputs = torch.randn(9, 4, dtype=torch.float64) @ weight.T
    loss = outputs.logsumexp(1).mean()
    hessian = dense(hessian_operator(loss, [weight]))
    assert torch.allclose(hessian, dense(gauss_newton_operator(loss, outputs, [weight])), atol=1e-14)


def test_dense_hessian_of_any_function_of_several_tensors() -> None:
    a, b, unused = torch.randn(2, 3), torch.tensor(2.0), torch.randn(2)
    found = dense_hessian(lambda a, b, unused: (a**3).sum() * b + b**2, [a, b, unused])
    expected = torch.zeros(9, 9)
    expected[:6, :6] = torch.diag(6 * a.flatten() * b)
    expected[6, :6] = expected[:6, 6] = 3 * a.flatten() ** 2
    expected[6, 6] = 2
    assert torch.allclose(found, expected, atol=1e-5)


def test_leaves_that_require_gradients_are_left_alone() -> None:
    leaf = nn.Parameter(torch.randn(4, dtype=torch.float64))
    with torch.no_grad():
        found = dense_hessian(lambda x: (x**4).sum(), leaf)
    assert torch.allclose(found.diag(), 12 * leaf.detach() ** 2) and leaf.grad is None and leaf.requires_grad


def test_a_linear_function_has_the_zero_hessian() -> None:
    found = dense_hessian(lambda x: 3 * x.sum(), torch.randn(5))
    assert not found.any()
    reading = spectrum(found)
    assert (reading.index, reading.zeros, reading.note) == (0.0, 5, "zero matrix") and math.isnan(reading.ratio10)


def test_a_billion_parameters_are_refused_with_the_estimate() -> None:
    with pytest.raises(
        UsageError, match=r"1,000,000,000 parameters in float32 needs 1\.2e\+10 GB, .* GB are free; take"
    ):
        dense_hessian(lambda x: x.sum(), torch.zeros(1).expand(10**9))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: dense_hessian(lambda x: x**2, torch.ones(3)), r"expected a scalar loss; got shape \(3,\)"),
        (lambda: dense_hessian(lambda x: torch.tensor(1.0), torch.ones(3)), "does not depend on the parameters"),
        (lambda: dense_hessian(lambda x: x.sum(), torch.ones(3, dtype=torch.int64)), r"floating-point .* torch\.int64"),
        (lambda: dense_hessian(lambda: torch.tensor(1.0), []), "at least one parameter"),
        (lambda: dense_hessian(lambda x: x.sum(), torch.ones(0)), "at least one parameter"),
        (lambda: dense_hessian(lambda a, b: a + b, [torch.ones(1), torch.ones(1).double()]), "float32, float64"),
        (lambda: spectrum(torch.ones(2, 3)), r"expected a square matrix; got shape \(2, 3\)"),
    ],
)
def test_misuse_is_one_line(call: object, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        call()  # type: ignore[operator]
    assert "\n" not in str(caught.value)


def test_wrong_vector_is_one_line() -> None:
    leaf = torch.ones(3, requires_grad=True)
    with pytest.raises(UsageError, match="expected a vector of 3 entries"):
        hessian_operator((leaf**2).sum(), [leaf])(torch.ones(4))


def test_spectrum_reads_index_percentile_and_condition() -> None:
    values = torch.tensor([-4.0, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 5.0, 6.0, 7.0, 8.0], dtype=torch.float64)
    turn = torch.linalg.qr(torch.randn(11, 11, dtype=torch.float64)).Q
    reading = spectrum(turn * values @ turn.T, mode="eval")
    assert reading.index == pytest.approx(2 / 11)
    assert (reading.zeros, reading.condition.rank, reading.mode, reading.dtype) == (1, 10, "eval", "float64")
    assert reading.percentile10 == pytest.approx(0.5) and reading.ratio10 == pytest.approx(16)
    assert torch.allclose(reading.eigenvalues, values, atol=1e-14)


def test_a_function_that_is_not_finite_gives_a_labelled_reading() -> None:
    found = dense_hessian(lambda x: (x / 0).sum() * x.sum(), torch.ones(3))
    reading = spectrum(found)
    assert reading.note == "not finite" and math.isnan(reading.index) and math.isnan(reading.condition.kappa)
