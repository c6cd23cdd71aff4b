"""Lanczos against dense eigenvalues: the bounds hold, the density integrates, the awkward operators are labelled."""

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from leadline.core.errors import UsageError
from leadline.linalg.lanczos import density, extremes, lanczos


@dataclass(frozen=True)
class Matrix:
    """A symmetric matrix as the operator the functions ask for."""

    matrix: Tensor
    mode: str = "eval"

    @property
    def size(self) -> int:
        return len(self.matrix)

    @property
    def dtype(self) -> torch.dtype:
        return self.matrix.dtype

    @property
    def device(self) -> torch.device:
        return self.matrix.device

    def __call__(self, vector: Tensor, /) -> Tensor:
        return self.matrix @ vector


def with_eigenvalues(values: Tensor, *, seed: int = 0) -> Matrix:
    draw = torch.Generator().manual_seed(seed)
    turn = torch.linalg.qr(torch.randn(len(values), len(values), generator=draw, dtype=torch.float64)).Q
    return Matrix(turn * values @ turn.T)


BULK = torch.cat(
    [torch.linspace(-0.3, 0.5, 196, dtype=torch.float64), torch.tensor([-3.0, -2.0, 5.0, 9.0], dtype=torch.float64)]
)


@pytest.mark.parametrize("steps", [4, 8, 15, 40])
def test_every_value_is_within_its_error_of_a_true_one(steps: int) -> None:
    found = extremes(with_eigenvalues(BULK), count=2, steps=steps, tolerance=0.0)
    for value, error in zip((*found.lowest, *found.highest), (*found.lowest_error, *found.highest_error), strict=True):
        assert float((BULK - value).abs().min()) <= error + 1e-14
    assert found.products == steps


def test_both_ends_converge_and_it_stops_early() -> None:
    found = extremes(with_eigenvalues(BULK), count=2, tolerance=1e-9)
    assert found.converged and found.products < 50
    assert found.lowest == pytest.approx((-3.0, -2.0), abs=1e-8)
    assert found.highest == pytest.approx((9.0, 5.0), abs=1e-8)
    assert (found.magnitude, found.mode, found.dtype) == (pytest.approx(9.0), "eval", "float64")


def test_single_precision_keeps_its_promise() -> None:
    found = extremes(Matrix(with_eigenvalues(BULK).matrix.float()), count=1, tolerance=1e-5)
    assert found.highest[0] == pytest.approx(9.0, rel=1e-5) and found.highest_error[0] < 1e-4


def test_the_basis_stays_orthonormal_far_beyond_convergence() -> None:
    basis = lanczos(with_eigenvalues(BULK), steps=150, generator=torch.Generator().manual_seed(1)).basis
    assert torch.allclose(basis @ basis.T, torch.eye(150, dtype=torch.float64), atol=1e-12)


def test_all_steps_give_all_eigenvalues_even_where_they_repeat() -> None:
    values = torch.tensor([-2.0] * 5 + [0.0] * 3 + [3.0] * 4, dtype=torch.float64)
    found = extremes(with_eigenvalues(values), count=12, steps=12, tolerance=0.0)
    assert found.lowest == pytest.approx(tuple(values.tolist()), abs=1e-12)


def test_zero_operator_and_single_parameter() -> None:
    zero = extremes(Matrix(torch.zeros(30, 30)))
    assert (zero.lowest, zero.highest, zero.converged) == ((0.0,), (0.0,), True)
    one = extremes(Matrix(torch.full((1, 1), -4.0)))
    assert (one.lowest, one.highest) == ((-4.0,), (-4.0,))
    assert density(Matrix(torch.zeros(30, 30)), probes=2, steps=5).index().value == 0.0


def test_not_converged_is_said() -> None:
    found = extremes(with_eigenvalues(torch.linspace(-1, 1, 300, dtype=torch.float64)), steps=10, tolerance=1e-8)
    assert not found.converged and found.note == "not converged in 10 products"


def test_density_integrates_what_the_spectrum_does() -> None:
    found = density(with_eigenvalues(BULK), probes=20, steps=40)
    assert torch.allclose(found.weights.sum(1), torch.ones(20, dtype=torch.float64))
    for function in (lambda x: x, lambda x: x**2, lambda x: torch.exp(-x), lambda x: (x < 0).double()):
        value, error = found.mean(function)
        assert abs(value - float(function(BULK).mean())) < 4 * error + 5e-3
    trace, error = found.trace
    assert abs(trace - float(BULK.sum())) < 4 * error
    index = found.index()
    assert abs(index.value - float((BULK < 0).double().mean())) < 4 * index.error + 0.02
    assert found.largest == pytest.approx(9.0, rel=1e-6)


def test_error_bars_cover_the_truth_about_as_often_as_they_say() -> None:
    operator = with_eigenvalues(BULK)
    truth = float((BULK**2).mean())
    estimates = [density(operator, probes=8, steps=12, seed=seed).mean(lambda x: x**2) for seed in range(30)]
    assert 18 <= sum(abs(value - truth) < 2 * error for value, error in estimates) <= 30


def test_percentile_and_ratio_with_their_errors() -> None:
    values = torch.linspace(0.5, 2.0, 80, dtype=torch.float64) * torch.tensor([1.0, -1.0] * 40, dtype=torch.float64)
    found = density(with_eigenvalues(values), probes=12, steps=60)
    exact = float(torch.quantile(values.abs(), 0.1))
    value, error = found.percentile()
    assert abs(value - exact) < 4 * error + 0.05 and error < 0.1
    assert found.ratio10().value == pytest.approx(2.0 / exact, rel=0.1)


def test_curve_is_a_density_with_an_error_band() -> None:
    grid = torch.linspace(-6, 12, 400, dtype=torch.float64)
    mean, error = density(with_eigenvalues(BULK), probes=6, steps=30).curve(grid, width=0.2)
    assert float(torch.trapezoid(mean, grid)) == pytest.approx(1.0, abs=1e-3)
    assert bool((error >= 0).all())


def test_one_probe_has_no_error_bar() -> None:
    found = density(with_eigenvalues(BULK), probes=1, steps=20)
    assert found.trace.error != found.trace.error and found.percentile().error != found.percentile().error


def test_misuse_is_one_line() -> None:
    with pytest.raises(UsageError, match="expected 1 to 30 eigenvalues at each end; got 31"):
        extremes(Matrix(torch.eye(30)), count=31)
    with pytest.raises(UsageError, match="at least one probe"):
        density(Matrix(torch.eye(3)), probes=0)
    with pytest.raises(UsageError, match="not finite"):
        extremes(Matrix(torch.full((4, 4), torch.nan)))
    with pytest.raises(UsageError, match=r"Lanczos with 100 vectors of 1,000,000,000 entries needs .* GB"):
        extremes(Huge())


class Huge(Matrix):
    """An operator of 10^9 parameters that must not be multiplied."""

    def __init__(self) -> None:
        super().__init__(torch.zeros(0))

    @property
    def size(self) -> int:
        return 10**9
