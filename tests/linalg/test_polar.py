"""The polar factor against scipy, any scale and kappa; the published iteration as printed and as it must be scaled."""

import math

import pytest
import scipy.linalg
import torch
from torch import Tensor

from leadline.core.errors import UsageError
from leadline.linalg.polar import inverse_root, nearest, polar

DTYPES = (torch.float32, torch.float64, torch.complex64, torch.complex128)


def with_kappa(m: int, n: int, kappa: float, dtype: torch.dtype = torch.float64) -> Tensor:
    wide = torch.promote_types(dtype, torch.float64)
    left = torch.linalg.qr(torch.randn(m, min(m, n), dtype=wide)).Q
    right = torch.linalg.qr(torch.randn(n, min(m, n), dtype=wide)).Q
    sigma = torch.logspace(0, -math.log10(kappa), min(m, n), dtype=torch.float64).to(wide)
    return ((left * sigma) @ right.mH).to(dtype)


def off(matrix: Tensor, target: float) -> float:
    return float((torch.linalg.svdvals(matrix.to(torch.complex128)) / target - 1).abs().max())


@pytest.mark.parametrize("shape", [(7, 4), (4, 7), (5, 5), (6, 1)])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("find", [lambda x, t: polar(x, t).nearest, nearest])
def test_it_is_the_unitary_polar_factor(shape: tuple[int, int], dtype: torch.dtype, find: object) -> None:
    x = torch.randn(shape, dtype=dtype)
    wide = x.to(torch.promote_types(dtype, torch.float64)).numpy()
    expected = torch.from_numpy(scipy.linalg.polar(wide)[0] * 1.5).to(dtype)
    found = find(x, 1.5)  # type: ignore[operator]
    tolerance = 1e-12 if dtype in (torch.float64, torch.complex128) else 1e-5
    torch.testing.assert_close(found, expected, rtol=0, atol=tolerance)


def test_nothing_with_these_singular_values_is_nearer() -> None:
    x = torch.randn(6, 4, dtype=torch.float64)
    best = polar(x, 2.0).nearest
    distance = torch.linalg.matrix_norm(x - best)
    for _ in range(20):
        other = best + 0.1 * torch.randn_like(best)
        assert torch.linalg.matrix_norm(x - polar(other, 2.0).nearest) >= distance


@pytest.mark.parametrize("scale", [1e-30, 1e-15, 1.0, 1e15, 1e30])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("tall", [True, False])
def test_any_scale(scale: float, dtype: torch.dtype, tall: bool) -> None:
    x = torch.randn(3, 8, 5, dtype=dtype)
    x = x if tall else x.mT
    eps = torch.finfo(dtype).eps
    for found in (polar(x * scale, 0.5), polar(x * scale, 0.5)):
        assert found.unique
        assert off(found.nearest, 0.5) < 20 * eps
        torch.testing.assert_close(found.nearest, polar(x, 0.5).nearest, rtol=0, atol=100 * eps)
    assert off(nearest(x * scale, 0.5), 0.5) < 20 * eps


@pytest.mark.parametrize("kappa", [1e2, 1e4, 1e6])
@pytest.mark.parametrize("dtype", DTYPES)
def test_cold_start_is_safe_for_ill_conditioned_input(kappa: float, dtype: torch.dtype) -> None:
    x = with_kappa(64, 32, kappa, dtype)
    found = polar(x, 3.0)
    assert off(found.nearest, 3.0) < 100 * torch.finfo(dtype).eps
    assert off(nearest(x, 3.0), 3.0) < 100 * torch.finfo(dtype).eps
    if torch.finfo(dtype).eps * kappa < 0.01:
        assert found.unique


def test_rank_deficient_input_is_reported_and_still_gets_a_nearest_matrix() -> None:
    x = torch.randn(3, 8, 5, dtype=torch.float64)
    x[1, :, 4] = x[1, :, 0] + x[1, :, 1]
    x[2] = 0
    found = polar(x)
    assert found.rank.tolist() == [5, 4, 0]
    assert not found.unique
    assert off(found.nearest, 1.0) < 1e-14
    distance = torch.linalg.matrix_norm(x - found.nearest)[1] ** 2
    assert float(distance) == pytest.approx(float(((torch.linalg.svdvals(x[1]) - 1) ** 2).sum()))


@pytest.mark.parametrize("error", [1e-7, 1e-4, 1e-2, 5e-2])
@pytest.mark.parametrize(("dtype", "limit"), [(torch.float32, 1e-6), (torch.float64, 1e-13), (torch.complex64, 1e-6)])
def test_warm_start_lands_where_the_cold_one_does(error: float, dtype: torch.dtype, limit: float) -> None:
    x = polar(torch.randn(128, 64, dtype=dtype), math.sqrt(2)).nearest
    step = torch.randn(128, 4, dtype=dtype) @ torch.randn(4, 64, dtype=dtype)
    moved = x + error * step * torch.linalg.matrix_norm(x) / torch.linalg.matrix_norm(step)
    found = nearest(moved, math.sqrt(2))
    assert off(found, math.sqrt(2)) < limit
    torch.testing.assert_close(found, polar(moved, math.sqrt(2)).nearest, rtol=0, atol=limit)


def test_doing_it_again_moves_no_more_than_rounding() -> None:
    once = nearest(torch.randn(64, 32), 1.4)
    assert float((nearest(once, 1.4) - once).abs().max()) < 1e-6


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_single(dtype: torch.dtype) -> None:
    x = torch.randn(16, 8).to(dtype)
    expected = polar(x.double()).nearest
    torch.testing.assert_close(nearest(x).double(), expected, rtol=0, atol=torch.finfo(dtype).eps)


def test_iteration_9_diverges_as_printed_and_converges_scaled() -> None:
    """He initialisation of a 3x3 stem at one frequency: the eigenvalues of P^H P are above 3."""
    kernel = torch.randn(64, 3, 3, 3, dtype=torch.float64) * math.sqrt(2 / 27)
    p = torch.fft.fft2(kernel, s=(32, 32))[..., 5, 7]
    gram = p.mH @ p
    printed = p @ inverse_root(gram, steps=8, scaled=False)
    assert not torch.isfinite(printed).all() or off(printed, 1.0) > 1e3
    scaled = p @ inverse_root(gram, steps=12)
    assert off(scaled, 1.0) < 1e-9
    torch.testing.assert_close(scaled, polar(p).nearest, rtol=0, atol=1e-9)


def test_at_its_own_target_the_printed_iteration_diverges_too() -> None:
    """sigma^2 = d / c = 64 / 3 on the set: a projected stem fed back is not a fixed point."""
    gram = 64 / 3 * torch.eye(3, dtype=torch.float64)
    assert not torch.isfinite(inverse_root(gram, steps=12, scaled=False)).all()
    torch.testing.assert_close(inverse_root(gram, steps=12), gram.diagonal().rsqrt().diag())


def test_eq_8_needs_the_conjugate_transpose() -> None:
    p = torch.randn(8, 5, dtype=torch.complex128)
    assert off(p @ inverse_root(p.mH @ p, steps=25), 1.0) < 1e-12
    plain = p @ inverse_root(p.mT @ p, steps=25)
    assert not torch.isfinite(plain).all() or off(plain, 1.0) > 0.1


@pytest.mark.parametrize(
    ("x", "target", "message"),
    [
        (torch.full((3, 2), math.nan), 1.0, "6 of 6 are NaN or infinite"),
        (torch.ones(3, 2), 0.0, "positive finite target; got 0.0"),
        (torch.ones(3, 2), math.inf, "positive finite target"),
        (torch.ones(3, 2, dtype=torch.int32), 1.0, "torch.int32"),
        (torch.ones(3), 1.0, r"\(3,\)"),
        (torch.ones(0, 2), 1.0, r"\(0, 2\)"),
    ],
)
def test_bad_input_is_one_clear_error(x: Tensor, target: float, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        polar(x, target)


def test_warm_start_of_numbers_that_are_none_is_the_same_error() -> None:
    with pytest.raises(UsageError, match="NaN or infinite"):
        nearest(torch.full((3, 2), math.nan))
