"""The autocorrelation by evaluation and interpolation against its definition, and its derivatives against autograd."""

import itertools

import pytest
import torch
from torch import Tensor

from leadline.linalg.correlation import correlation

CPU = torch.device("cpu")
SHAPES = [(1,), (2,), (3,), (5,), (3, 3), (2, 4), (5, 5), (3, 1), (2, 2, 2), (3, 2, 5)]


def by_definition(kernel: Tensor, dims: int) -> Tensor:
    """R_s = sum_t K_t^T K_(t+s)."""
    shape = kernel.shape[:dims]
    out = torch.zeros(*(2 * q - 1 for q in shape), kernel.shape[dims], kernel.shape[-1], kernel.shape[-1]).double()
    for t, u in itertools.product(itertools.product(*map(range, shape)), repeat=2):
        lag = tuple(b - a + q - 1 for a, b, q in zip(t, u, shape, strict=True))
        out[lag] += (kernel[t].mT @ kernel[u]).double()
    return out.flatten(0, dims - 1)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-13), (torch.float32, 5e-6)])
def test_autocorrelation_is_its_definition(shape: tuple[int, ...], dtype: torch.dtype, tolerance: float) -> None:
    kernel = torch.randn(*shape, 2, 6, 4, dtype=dtype)
    table = correlation(shape, dtype, CPU)
    found = table.autocorrelation(table.values(kernel.flatten(0, len(shape) - 1))).double()
    expected = by_definition(kernel, len(shape))
    assert float((found - expected).abs().max()) <= tolerance * float(expected.abs().max())


@pytest.mark.parametrize("shape", SHAPES)
def test_differential_and_adjoint_are_autograds(shape: tuple[int, ...]) -> None:
    table = correlation(shape, torch.float64, CPU)
    taps, change = torch.randn(2, len(table.evaluate[0]), 1, 5, 3, dtype=torch.float64)

    def lags(kernel: Tensor) -> Tensor:
        return by_definition(kernel.view(*shape, 1, 5, 3), len(shape))

    mirrored = table.mirror(table.values(taps))
    tangent = torch.autograd.functional.jvp(lags, taps, change)[1]
    torch.testing.assert_close(table.differential(mirrored, table.values(change)), tangent, rtol=0, atol=1e-11)
    weights = torch.randn_like(tangent)
    weights = weights + weights.flip(0).mT
    gradient = torch.autograd.functional.vjp(lags, taps, weights)[1]
    torch.testing.assert_close(table.adjoint(mirrored, weights), gradient, rtol=0, atol=1e-11)


def test_a_three_by_three_kernel_costs_thirteen_real_products() -> None:
    table = correlation((3, 3), torch.float32, CPU)
    assert (table.half, table.alone, table.centre) == (13, 1, 12)
    assert not table.evaluate.is_complex()
