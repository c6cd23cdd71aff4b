"""kappa under the policy: right where it is known, labelled where it is not, from every route the same."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from leadline.core.errors import UsageError
from leadline.linalg.conditioning import (
    condition,
    headline,
    hidden_condition,
    hosvd_conditions,
    matrix_condition,
    rounding_tolerance,
    structure,
)


def with_kappa(m: int, n: int, kappa: float, *, seed: int = 0) -> Tensor:
    """A float64 m x n matrix whose singular values run logarithmically from 1 to 1/kappa."""
    draw = torch.Generator().manual_seed(seed)
    rank = min(m, n)
    left = torch.linalg.qr(torch.randn(m, rank, generator=draw, dtype=torch.float64)).Q
    right = torch.linalg.qr(torch.randn(n, rank, generator=draw, dtype=torch.float64)).Q
    return left * torch.logspace(0, -math.log10(kappa), rank, dtype=torch.float64) @ right.T


def slow_kappa(matrix: Tensor) -> float:
    sigma = torch.linalg.svd(matrix.double(), full_matrices=False).S
    return float(sigma[0] / sigma[-1])


ROUTES = {
    "matrix": matrix_condition,
    "hosvd": lambda matrix: hosvd_conditions([matrix.reshape(matrix.shape[0], -1, 2, 2)])[0][0],
    "batch": hidden_condition,
    "channel": lambda matrix: hidden_condition(matrix.reshape(matrix.shape[0], 4, -1).movedim(0, 1), mode="channel"),
}


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("exponent", range(3, 17))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_kappa_is_right_or_a_true_bound(route: str, exponent: int, dtype: torch.dtype) -> None:
    matrix = with_kappa(64, 512, 10.0**exponent).to(dtype)
    found = ROUTES[route](matrix)
    tolerance = rounding_tolerance((64, 512), dtype)
    assert found.dtype == str(dtype).removeprefix("torch.")
    if 10.0**exponent < 0.5 / tolerance:
        assert found.kappa == pytest.approx(10.0**exponent, rel=1e-2)
        assert (found.bounded, found.lost, found.rank) == (False, 0, 64)
    elif 10.0**exponent > 10 / tolerance:
        assert found.bounded and found.kappa == pytest.approx(1 / tolerance)
        assert found.lost > 0 and found.rank + found.lost == 64
        assert str(found).startswith("> ")
        assert 1 < found.kappa_kept <= 1 / tolerance


@pytest.mark.parametrize("route", ROUTES)
def test_no_route_uses_a_single_precision_gram_matrix(route: str) -> None:
    """sigma_min^2 / sigma_max^2 = 1e-10 is below eps32: a float32 Gram cannot give these five digits."""
    matrix = with_kappa(64, 512, 1e5).float()
    assert ROUTES[route](matrix).kappa == pytest.approx(slow_kappa(matrix), rel=1e-4)
    single = torch.linalg.eigvalsh(matrix @ matrix.T)
    assert abs(float((single[-1] / single[0].abs()).sqrt()) / slow_kappa(matrix) - 1) > 0.1


@pytest.mark.parametrize("route", ROUTES)
def test_kappa_1e8_from_float64_data_to_one_percent(route: str) -> None:
    assert ROUTES[route](with_kappa(64, 512, 1e8)).kappa == pytest.approx(1e8, rel=1e-2)


def test_tolerance_is_above_the_rounding_it_bounds() -> None:
    draw = torch.Generator().manual_seed(1)
    for m, n in [(4, 4), (64, 64), (16, 4096), (500, 300)]:
        matrix = torch.randn(m, n, generator=draw, dtype=torch.float64)
        noise = torch.linalg.matrix_norm(matrix.float().double() - matrix, 2) / torch.linalg.matrix_norm(matrix, 2)
        assert noise < rounding_tolerance((m, n), torch.float32) / 4


@pytest.mark.parametrize("shape", [(7,), (6, 9), (9, 6), (5, 4, 3), (40, 1, 3, 3), (4, 6, 3, 2), (3, 4, 2, 2, 3)])
def test_hosvd_modes_match_unfold_and_svd(shape: tuple[int, ...]) -> None:
    draw = torch.Generator().manual_seed(2)
    weights = [torch.randn(shape, generator=draw, dtype=torch.float64) for _ in range(3)]
    for weight, modes in zip(weights, hosvd_conditions(weights), strict=True):
        assert len(modes) == weight.ndim
        for mode, found in enumerate(modes):
            unfolded = weight.movedim(mode, 0).reshape(weight.shape[mode], -1)
            assert found.kappa == pytest.approx(slow_kappa(unfolded), rel=1e-12)
            assert found.shape == tuple(unfolded.shape)
        assert headline(modes).kappa == max(mode.kappa for mode in modes)


def test_hosvd_keeps_the_order_of_mixed_weights() -> None:
    weights = [torch.randn(4, 3, 3, 3), torch.randn(5, 4), torch.randn(4, 3, 3, 3), torch.randn(600, 500)]
    for weight, modes in zip(weights, hosvd_conditions(weights), strict=True):
        assert modes[0].kappa == pytest.approx(slow_kappa(weight.flatten(1)), rel=1e-9)


def test_hosvd_finds_dead_and_repeated_filters() -> None:
    dead, twin = torch.randn(2, 8, 4, 3, 3).unbind()
    dead[2] = 0
    twin[5] = twin[1]
    for weight, zero_rows in ((dead, 1), (twin, 0)):
        (modes,) = hosvd_conditions([weight])
        assert (modes[0].kappa, modes[0].lost, modes[0].structural, modes[0].dead) == (math.inf, 1, 1, zero_rows)
        assert not modes[0].bounded and math.isfinite(modes[0].kappa_kept)
        assert math.isfinite(modes[1].kappa)


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_hidden_modes_match_flattened_svd_in_every_memory_layout(layout: torch.memory_format) -> None:
    hidden = torch.randn(12, 5, 7, 6, dtype=torch.float64).contiguous(memory_format=layout)
    assert hidden_condition(hidden).kappa == pytest.approx(slow_kappa(hidden.flatten(1)), rel=1e-12)
    channels = hidden.movedim(1, 0).flatten(1)
    assert hidden_condition(hidden, mode="channel").kappa == pytest.approx(slow_kappa(channels), rel=1e-12)


@pytest.mark.parametrize("shape", [(300, 4), (4, 300), (3, 9, 2), (70, 3, 1, 1), (2, 1100, 300)])
def test_hidden_takes_the_short_side_of_any_shape(shape: tuple[int, ...]) -> None:
    hidden = torch.randn(shape, dtype=torch.float64)
    for mode, dim in (("batch", 0), ("channel", 1)):
        found = hidden_condition(hidden, mode=mode)  # type: ignore[arg-type]
        assert found.kappa == pytest.approx(slow_kappa(hidden.movedim(dim, 0).flatten(1)), rel=1e-9)


def test_hidden_tokens_have_their_channels_last() -> None:
    hidden = torch.randn(6, 10, 4, dtype=torch.float64)
    found = hidden_condition(hidden, mode="channel", channel_dim=-1)
    assert found.shape == (4, 60)
    assert found.kappa == pytest.approx(slow_kappa(hidden.flatten(0, 1)), rel=1e-12)


def test_dead_channels_are_counted_apart() -> None:
    hidden = torch.randn(8, 6, 5, 5)
    hidden[:, [1, 4]] = 0
    found = hidden_condition(hidden, mode="channel")
    assert (found.kappa, found.dead, found.lost, found.structural, found.rank) == (math.inf, 2, 2, 2, 4)
    alive = hidden[:, [0, 2, 3, 5]].movedim(1, 0).flatten(1)
    assert found.kappa_kept == pytest.approx(slow_kappa(alive), rel=1e-6)
    assert math.isfinite(hidden_condition(hidden).kappa)


def test_repeated_samples_and_constant_maps_are_exactly_singular() -> None:
    hidden = torch.randn(8, 6, 5, 5)
    hidden[3] = hidden[0]
    assert (hidden_condition(hidden).kappa, hidden_condition(hidden).structural) == (math.inf, 1)
    flat = torch.randn(8, 3, 1, 1).expand(8, 3, 5, 5)
    assert hidden_condition(flat).structural == 5


def test_a_reference_forward_sets_the_noise() -> None:
    exact = with_kappa(16, 400, 1e5)
    noisy = (exact + 1e-4 * torch.randn(16, 400, dtype=torch.float64) / 20).float()
    found = hidden_condition(noisy, reference=exact)
    noise = torch.linalg.matrix_norm(noisy.double() - exact, 2) / torch.linalg.matrix_norm(noisy.double(), 2)
    assert found.tolerance == pytest.approx(float(noise), rel=1e-6)
    assert found.bounded and found.kappa == pytest.approx(1 / float(noise), rel=1e-6)


def test_exact_low_rank_is_infinite_and_rounded_low_rank_is_a_bound() -> None:
    left, right = torch.randint(-3, 4, (2, 20, 4), generator=torch.Generator().manual_seed(3)).float()
    exact = matrix_condition(left @ right.T)
    assert (exact.kappa, exact.bounded, exact.rank) == (math.inf, False, 4)
    rounded = matrix_condition(torch.randn(20, 4) @ torch.randn(4, 20))
    assert rounded.bounded and rounded.rank == 4 and rounded.note == "16 not told from zero in float32"


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 6), st.integers(1, 6), st.integers(-300, 300), st.booleans())
def test_scale_does_not_matter(m: int, n: int, exponent: int, negative: bool) -> None:
    matrix = torch.randn(m, n, dtype=torch.float64, generator=torch.Generator().manual_seed(m * 10 + n))
    scaled = matrix * (-1.0 if negative else 1.0) * 10.0**exponent
    expected = matrix_condition(matrix).kappa
    for route in (matrix_condition, hidden_condition, lambda x: hosvd_conditions([x])[0][1]):
        assert route(scaled).kappa == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_zero_and_not_finite_are_labelled(dtype: torch.dtype) -> None:
    for route in ROUTES.values():
        zero = route(torch.zeros(8, 16, dtype=dtype))
        assert (zero.kappa, zero.rank, zero.note.split(";")[0]) == (math.inf, 0, "zero matrix")
        for bad in (math.nan, math.inf):
            matrix = torch.ones(8, 16, dtype=dtype)
            matrix[2, 3] = bad
            found = route(matrix)
            assert math.isnan(found.kappa) and found.note.startswith("not finite") and found.lost == 0


def test_complex_matrices_and_operator_spectra() -> None:
    matrix = torch.randn(6, 4, dtype=torch.complex64)
    assert matrix_condition(matrix).kappa == pytest.approx(slow_kappa_complex(matrix), rel=1e-12)
    frequencies = torch.rand(10, 4) + 1
    assert condition(frequencies, shape=(4, 8), dtype=torch.float32).rank == 40


def slow_kappa_complex(matrix: Tensor) -> float:
    eigenvalues = torch.linalg.eigvalsh(matrix.to(torch.complex128).mH @ matrix.to(torch.complex128))
    return float((eigenvalues[-1] / eigenvalues[0]).sqrt())


def test_parameters_are_read_and_left_alone() -> None:
    weight = torch.nn.Parameter(torch.randn(4, 3, 3, 3))
    before = weight.detach().clone()
    modes = hosvd_conditions([weight])[0]
    assert len(modes) == 4 and weight.grad is None and torch.equal(weight, before)


@pytest.mark.parametrize("route", ROUTES)
def test_integers_and_empty_tensors_are_refused(route: str) -> None:
    with pytest.raises(UsageError, match=r"expected a .*floating-point tensor; got torch\.int64"):
        ROUTES[route](torch.ones(8, 16, dtype=torch.int64))
    with pytest.raises(UsageError, match="expected a tensor with elements"):
        hidden_condition(torch.zeros(0, 16))


def test_misuse_is_one_line() -> None:
    with pytest.raises(UsageError, match="unknown mode 'chanel'; did you mean 'channel'"):
        hidden_condition(torch.ones(2, 3), mode="chanel")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"expected a matrix; got a tensor of shape \(2, 3, 4\)"):
        matrix_condition(torch.ones(2, 3, 4))
    with pytest.raises(UsageError, match="at least one singular value"):
        condition([], shape=(0, 3), dtype=torch.float32)


def test_structure_counts_what_is_certainly_lost() -> None:
    matrix = torch.randn(6, 9, dtype=torch.float64)
    matrix[:, 2:] = 0
    assert structure(matrix) == (4, 0)
    matrix[3] = 0
    assert structure(matrix) == (4, 1)
