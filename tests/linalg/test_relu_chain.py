"""The pairwise Hessian of ReLU chains against autograd, in every arrangement of skips and activations."""

from itertools import product

import pytest
import torch
from torch import Tensor

from leadline.core.errors import UsageError
from leadline.linalg.hessian import dense_hessian
from leadline.linalg.linear_chain import Moments, hessian
from leadline.linalg.relu_chain import ReluChain

WIDTH = 3
PLACES: list[tuple[str, ...]] = [(), ("pre",), ("mid",), ("post",), ("pre", "mid", "post")]


def samples(count: int = 37) -> tuple[Tensor, Tensor]:
    return torch.randn(2, count, WIDTH, dtype=torch.float64).unbind()


def slow_output(chain: ReluChain, weights: Tensor, x: Tensor) -> Tensor:
    """Unit by unit with torch.relu."""
    for start in range(0, len(weights), chain.unit):
        branch = torch.relu(x) if "pre" in chain.relu else x
        for layer in range(start, start + chain.unit):
            branch = branch @ weights[layer].T
            place = "post" if layer == start + chain.unit - 1 else "mid"
            branch = torch.relu(branch) if place in chain.relu else branch
        x = x + branch if chain.skip else branch
    return x


@pytest.mark.parametrize(("unit", "skip", "relu"), list(product([1, 2, 3], [True, False], PLACES)))
def test_matches_autograd(unit: int, skip: bool, relu: tuple[str, ...]) -> None:
    chain = ReluChain(unit=unit, skip=skip, relu=relu)
    (x, y), weights = samples(), torch.randn(6, WIDTH, WIDTH, dtype=torch.float64) / 2
    assert torch.allclose(chain.output(weights, x), slow_output(chain, weights, x), atol=1e-13)
    expected = dense_hessian(lambda w: ((slow_output(chain, w, x) - y) ** 2).sum() / (2 * len(x)), weights)
    found = chain.hessian(weights, x, y, chunk=16)
    assert torch.allclose(found, expected, rtol=0, atol=1e-13 * max(1.0, float(expected.abs().max())))
    assert torch.equal(found, found.T)


@pytest.mark.parametrize("skip", [True, False])
def test_without_relus_it_is_the_linear_chain(skip: bool) -> None:
    (x, y), weights = samples(), torch.randn(4, WIDTH, WIDTH, dtype=torch.float64) / 2
    found = ReluChain(unit=2, skip=skip, relu=()).hessian(weights, x, y)
    assert torch.allclose(found, hessian(weights, Moments.of(x, y), shortcut=2 if skip else 0), atol=1e-13)


def test_at_exactly_zero_a_mid_chain_is_flat() -> None:
    x, y = samples()
    assert not ReluChain().hessian(torch.zeros(4, WIDTH, WIDTH), x, y).any()


def test_single_precision_and_chunks_agree() -> None:
    (x, y), weights = samples(500), torch.randn(4, WIDTH, WIDTH, dtype=torch.float64) / 2
    exact = ReluChain().hessian(weights, x, y)
    assert torch.allclose(ReluChain().hessian(weights, x, y, chunk=64), exact, atol=1e-14)
    single = ReluChain().hessian(weights.float(), x, y)
    assert single.dtype == torch.float32
    assert float((single - exact).abs().max() / exact.abs().max()) < 1e-6


def test_weights_that_require_gradients_are_left_alone() -> None:
    x, y = samples()
    weights = torch.nn.Parameter(torch.randn(2, WIDTH, WIDTH, dtype=torch.float64))
    assert not ReluChain().hessian(weights, x, y).requires_grad and weights.grad is None


def test_misuse_is_one_line() -> None:
    x, y = samples()
    with pytest.raises(UsageError, match="unknown position 'middle'; did you mean 'mid'"):
        ReluChain(relu=("middle",))
    with pytest.raises(UsageError, match="at least one layer per unit; got 0"):
        ReluChain(unit=0)
    with pytest.raises(UsageError, match="whole units of 2; got 3"):
        ReluChain().hessian(torch.zeros(3, WIDTH, WIDTH), x, y)
    with pytest.raises(UsageError, match=r"samples \(m, 3\); got \(37, 4\)"):
        ReluChain().hessian(torch.zeros(2, WIDTH, WIDTH), torch.ones(37, 4), torch.ones(37, 4))
    with pytest.raises(UsageError, match=r"got \(37, 3\) and \(36, 3\)"):
        ReluChain().hessian(torch.zeros(2, WIDTH, WIDTH), x, y[1:])
    with pytest.raises(UsageError, match=r"expected weights \(layers, d, d\)"):
        ReluChain().hessian(torch.zeros(2, WIDTH, WIDTH, dtype=torch.int64), x, y)
    with pytest.raises(UsageError, match=r"the Hessian of 4,000,000 parameters needs .* GB"):
        ReluChain().hessian(torch.zeros(1).expand(4, 1000, 1000), torch.ones(1, 1000), torch.ones(1, 1000))
