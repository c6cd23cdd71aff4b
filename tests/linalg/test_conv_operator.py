"""Convolutions as operators against the matrix written out entry by entry, and against autograd's Jacobian."""

import itertools
import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from leadline.core.errors import UsageError
from leadline.linalg.conv_operator import ConvOperator, conv_operator, of
from leadline.linalg.conv_spectrum import supremum, symbol_spectrum
from leadline.linalg.polyphase import layout

F64 = torch.float64


def matrix(operator: ConvOperator) -> Tensor:
    """y[o, m] = sum_(i, t) K[o, i, t] x[g(o) + i, s m + dilation t - before], one entry of the matrix at a time."""
    kernel, size = operator.kernel, operator.size
    d, per_group = kernel.shape[:2]
    out = torch.zeros(*operator.image, *operator.domain, dtype=F64)
    pixels = list(itertools.product(*(range(m) for m in operator.image[1:])))
    for o, i, m in itertools.product(range(d), range(per_group), pixels):
        channel = o // (d // operator.groups) * per_group + i
        for t in itertools.product(*(range(k) for k in kernel.shape[2:])):
            axes = zip(m, t, operator.stride, operator.dilation, operator.padding, strict=True)
            place = [s * a + b * tap - pad[0] for a, tap, s, b, pad in axes]
            if operator.circular:
                place = [p % n for p, n in zip(place, size, strict=True)]
            if all(0 <= p < n for p, n in zip(place, size, strict=True)):
                out[(o, *m, channel, *place)] += kernel[(o, i, *t)].double()
    return out.view(math.prod(operator.image), -1)


CASES: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((3, 2, 3), {"size": 8, "padding": 1}),
    ((4, 1, 5), {"size": 9, "stride": 3, "padding": 2, "groups": 2}),
    ((3, 2, 3, 3), {"size": 5, "padding": "same"}),
    ((2, 3, 3, 2), {"size": (6, 4), "stride": 2, "padding": (1, 0)}),
    ((4, 2, 3, 3), {"size": 7, "dilation": 2, "padding": 2, "groups": 2}),
    ((3, 2, 4, 4), {"size": 8, "stride": 4}),
    ((3, 2, 1, 1), {"size": 5, "stride": 2}),
    ((2, 2, 2, 3, 2), {"size": (4, 3, 4), "stride": (2, 1, 2), "padding": (0, 1, 0)}),
    ((2, 2, 3, 3), {"size": 2, "padding": 1}),
]


@pytest.mark.parametrize("mode", ["zeros", "circular"])
@pytest.mark.parametrize(("shape", "options"), CASES)
def test_product_and_adjoint_are_those_of_the_matrix(
    shape: tuple[int, ...], options: dict[str, Any], mode: str
) -> None:
    operator = conv_operator(torch.randn(shape, dtype=F64), padding_mode=mode, **options)
    dense = matrix(operator)
    x = torch.randn(2, *operator.domain, dtype=F64)
    y = torch.randn(2, *operator.image, dtype=F64)
    torch.testing.assert_close(operator.product(x).flatten(1), x.flatten(1) @ dense.T, rtol=0, atol=1e-12)
    torch.testing.assert_close(operator.adjoint(y).flatten(1), y.flatten(1) @ dense, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "conv",
    [
        nn.Conv1d(4, 6, 3, padding=2, stride=2, dilation=2, groups=2),
        nn.Conv2d(3, 4, (3, 5), padding=(1, 2), stride=(2, 1)),
        nn.Conv2d(3, 4, 4, padding="same", padding_mode="circular"),
        nn.Conv2d(4, 4, 3, padding=1, padding_mode="circular", stride=2, groups=4),
        nn.Conv3d(2, 3, 2, padding=1, dilation=2),
    ],
)
def test_operator_of_a_layer_is_autograds_jacobian(conv: nn.Conv2d) -> None:
    conv = conv.double()
    operator = of(conv, 6)
    x = torch.randn(1, *operator.domain, dtype=F64)
    jacobian = torch.autograd.functional.jacobian(conv, x).view(math.prod(operator.image), -1)
    torch.testing.assert_close(matrix(operator), jacobian, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("shape", "options"), [*CASES, ((6, 2, 3, 3), {"size": 6, "stride": 2}), ((2, 2, 5), {"size": 3})]
)
def test_spectrum_on_a_torus_is_that_of_the_matrix(shape: tuple[int, ...], options: dict[str, Any]) -> None:
    operator = conv_operator(torch.randn(shape, dtype=F64), **{**options, "padding": "same"})
    try:
        operator = operator.on_torus()
    except UsageError:
        assert any(n % s for n, s in zip(operator.size, operator.stride, strict=True))
        return
    sigma = torch.linalg.svdvals(matrix(operator))
    torch.testing.assert_close(operator.spectrum().sigma, sigma, rtol=0, atol=1e-12 * float(sigma[0]))
    assert operator.sigma_max().value == pytest.approx(float(sigma[0]), rel=1e-12)


@given(
    dims=st.integers(1, 3),
    k=st.integers(1, 4),
    s=st.integers(1, 3),
    dilation=st.integers(1, 2),
    groups=st.integers(1, 2),
)
@settings(max_examples=30, deadline=None)
def test_spectrum_for_any_geometry(dims: int, k: int, s: int, dilation: int, groups: int) -> None:
    torch.manual_seed(k)
    operator = ConvOperator(
        kernel=torch.randn(2 * groups, 1, *[k] * dims, dtype=F64),
        size=(2 * s,) * dims,
        stride=(s,) * dims,
        dilation=(dilation,) * dims,
        groups=groups,
        padding=((dilation * (k - 1), 0),) * dims,
        circular=True,
    )
    sigma = torch.linalg.svdvals(matrix(operator))
    torch.testing.assert_close(operator.spectrum().sigma, sigma, rtol=0, atol=1e-12 * float(sigma[0]))


def test_half_of_the_frequencies_and_one_matrix_where_one_is_enough() -> None:
    spectrum = conv_operator(torch.randn(4, 4, 3, 3), 32, padding=1, padding_mode="circular").spectrum()
    assert len(spectrum.values) == (32**2 + 4) // 2
    assert int(spectrum.multiplicity.sum()) == 32**2
    assert len(conv_operator(torch.randn(4, 4, 1, 1), 32, stride=2).spectrum().values) == 1
    assert len(conv_operator(torch.randn(4, 3, 4, 4), 32, stride=4).spectrum().values) == 1


def test_pixels_that_the_stride_skips_are_zeros_apart() -> None:
    operator = conv_operator(torch.randn(8, 4, 1, 1, dtype=F64), 6, stride=2)
    spectrum = operator.spectrum()
    assert spectrum.zeros == 4 * 9  # 4 of the 8 outputs of each of 3 x 3 pixels
    assert len(spectrum.sigma) == min(4 * 36, 8 * 9)
    assert math.isfinite(spectrum.condition.kappa)
    assert "36 more are zero" in spectrum.condition.note


def with_kappa(kappa: float, dtype: torch.dtype) -> Tensor:
    """A 2 x 2 kernel of 8 channels whose every frequency has singular values from 1 to 1 / kappa.

    P + (I - P) z with a projector P is unitary on |z| = 1: one per axis, and a matrix of that kappa in between.
    """

    def orthogonal() -> Tensor:
        return torch.linalg.qr(torch.randn(8, 8, dtype=F64)).Q

    def factor(basis: Tensor) -> tuple[Tensor, Tensor]:
        projector = basis[:, :4] @ basis[:, :4].T
        return projector, torch.eye(8, dtype=F64) - projector

    scale = orthogonal() @ torch.diag(torch.logspace(0, -math.log10(kappa), 8, dtype=F64)) @ orthogonal()
    left, right = factor(orthogonal()), factor(orthogonal())
    rows = [torch.stack([a @ scale @ b for b in right], -1) for a in left]
    return torch.stack(rows, -2).to(dtype)


@pytest.mark.parametrize("kappa", [1e1, 1e3, 1e5, 1e6, 1e8])
def test_kappa_from_float64_kernels_is_right_to_a_percent(kappa: float) -> None:
    operator = conv_operator(with_kappa(kappa, F64), 8, padding="same", padding_mode="circular")
    assert operator.kappa().value == pytest.approx(kappa, rel=1e-2)
    assert operator.kappa().low == operator.kappa().high


@pytest.mark.parametrize("kappa", [1e3, 1e5])
def test_kappa_of_float32_kernels_is_not_taken_from_their_gram_matrix(kappa: float) -> None:
    """In float32, sigma^2 of the Gram matrix is lost below 1e-7 sigma_max^2: kappa would stop at some thousands."""
    kernel = with_kappa(kappa, torch.float32)
    operator = conv_operator(kernel, 8, padding="same", padding_mode="circular")
    assert operator.kappa().value == pytest.approx(kappa, rel=0.02)
    symbol = torch.fft.fft2(kernel, s=(8, 8)).permute(2, 3, 0, 1)
    squares = torch.linalg.eigvalsh(symbol.mH @ symbol)
    naive = float((squares.max() / squares.min().clamp(min=1e-30)).sqrt())
    if kappa > 1e4:
        assert abs(naive / kappa - 1) > 0.1  # what this test is here to keep out


def test_kappa_beyond_what_the_kernels_precision_tells_is_a_lower_bound() -> None:
    found = conv_operator(with_kappa(1e9, torch.float32), 8, padding="same", padding_mode="circular").kappa()
    assert found.value is None
    assert found.high == math.inf
    assert 1e5 < found.low < 1e8


@pytest.mark.parametrize("stride", [1, 2])
def test_bounds_with_zero_padding_hold_and_say_what_they_are(stride: int) -> None:
    operator = conv_operator(torch.randn(6, 4, 3, 3, dtype=F64), 8, padding=1, stride=stride)
    sigma = torch.linalg.svdvals(matrix(operator))
    top, low, kappa = operator.sigma_max(), operator.sigma_min(products=30), operator.kappa(products=30)
    assert top.value == pytest.approx(float(sigma[0]), rel=1e-6)
    assert top.low <= float(sigma[0]) <= top.high
    assert low.value is None
    assert low.low <= float(sigma[-1]) <= low.high
    assert "upper bound" in low.method
    assert kappa.value is None
    assert kappa.low <= float(sigma[0] / sigma[-1]) * (1 + 1e-9)
    with pytest.raises(UsageError, match="no closed form"):
        operator.spectrum()


@pytest.mark.parametrize(
    ("k", "stride", "dilation"), [(3, 1, 1), (2, 1, 1), (5, 2, 1), (3, 1, 2), (3, 3, 1), (1, 1, 1)]
)
def test_supremum_is_above_every_grid_and_close(k: int, stride: int, dilation: int) -> None:
    kernel = torch.randn(5, 4, k, k, dtype=F64)
    form = layout(tuple(kernel.shape), stride=(stride,) * 2, dilation=(dilation,) * 2)
    dense = float(symbol_spectrum(kernel, form, (37, 41)).values.max())
    assert dense <= supremum(kernel, form) <= 1.09 * dense


def test_the_coarse_grid_decides_isometry_for_every_map() -> None:
    """P^H P has degree k - 1: if it is constant on the (2k - 1)-grid it is constant."""
    kernel = with_kappa(1.0, F64)
    form = layout(tuple(kernel.shape), stride=(1, 1), dilation=(1, 1))
    for grid in ((3, 3), (4, 7), (16, 16)):
        values = symbol_spectrum(kernel, form, grid).values
        torch.testing.assert_close(values, torch.ones_like(values), rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    ("kernel", "options", "message"),
    [
        (torch.full((2, 2, 3, 3), math.nan), {}, "36 of 36 are NaN or infinite"),
        (torch.full((2, 2, 3, 3), math.inf), {}, "NaN or infinite"),
        (torch.ones(2, 2, 3, 3, dtype=torch.int64), {}, "torch.int64"),
        (torch.ones(2, 2, 3, 3, dtype=torch.complex64), {}, "torch.complex64"),
        (torch.ones(0, 2, 3, 3), {}, "with entries"),
        (torch.ones(2, 2), {}, r"\(2, 2\)"),
        (torch.ones(2, 2, 3, 3, device="meta"), {}, "meta"),
        (torch.ones(2, 2, 9, 9), {}, "does not fit a map"),
        (torch.ones(3, 2, 3, 3), {"groups": 2}, "2 groups, 3 channels"),
        (torch.ones(2, 2, 3, 3), {"size": (8, 8, 8)}, "2 positive numbers for size"),
        (torch.ones(2, 2, 3, 3), {"size": 0}, "positive numbers for size"),
        (torch.ones(2, 2, 3, 3), {"padding": -1}, "none negative"),
        (torch.ones(2, 2, 3, 3), {"padding": "full"}, "unknown padding 'full'"),
        (torch.ones(2, 2, 3, 3), {"padding_mode": "reflect"}, "unknown padding_mode 'reflect'"),
    ],
)
def test_bad_input_is_one_clear_error(kernel: Tensor, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        conv_operator(kernel, **{"size": 8, **options})


def test_kernels_larger_than_the_map_wrap_around_and_zero_kernels_are_labelled() -> None:
    operator = conv_operator(torch.randn(2, 2, 5, 5, dtype=F64), 3, padding="same", padding_mode="circular")
    sigma = torch.linalg.svdvals(matrix(operator))
    torch.testing.assert_close(operator.spectrum().sigma, sigma, rtol=0, atol=1e-12 * float(sigma[0]))
    zero = conv_operator(torch.zeros(2, 2, 3, 3), 4, padding=1, padding_mode="circular")
    assert zero.spectrum().condition.kappa == math.inf
    assert "zero matrix" in zero.kappa().method
    padded = conv_operator(torch.zeros(2, 2, 3, 3), 4, padding=1)
    assert padded.sigma_max().value == 0.0
    assert padded.kappa().value is None


@pytest.mark.parametrize("scale", [1e-200, 1e-30, 1e30, 1e200])
def test_any_scale(scale: float) -> None:
    kernel = torch.randn(4, 3, 3, 3, dtype=F64)
    plain, scaled = (
        conv_operator(k, 6, padding=1, padding_mode="circular").spectrum() for k in (kernel, kernel * scale)
    )
    torch.testing.assert_close(scaled.values / scale, plain.values, rtol=1e-12, atol=0)
    assert scaled.condition.kappa == pytest.approx(plain.condition.kappa)


def test_very_large_kernels_are_transformed_directly() -> None:
    operator = conv_operator(
        torch.randn(3, 1, 21, 21, dtype=F64), 24, padding="same", padding_mode="circular", groups=3
    )
    expected = torch.fft.fft2(operator.kernel[:, 0], s=(24, 24)).abs().flatten().sort(descending=True).values
    torch.testing.assert_close(operator.spectrum().sigma, expected, rtol=0, atol=1e-11)


def test_trainable_kernels_are_read_and_left_alone() -> None:
    kernel = nn.Parameter(torch.randn(4, 4, 3, 3))
    operator = conv_operator(kernel, 6, padding=1)
    assert operator.sigma_max().value != 0
    assert kernel.grad is None
    assert not operator.kernel.requires_grad
    with pytest.raises(UsageError, match="Linear"):
        of(nn.Linear(3, 3), 6)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_low_precision_kernels_are_measured_in_float64(dtype: torch.dtype) -> None:
    kernel = torch.randn(4, 4, 3, 3).to(dtype)
    spectrum = conv_operator(kernel, 6, padding=1, padding_mode="circular").spectrum()
    exact = conv_operator(kernel.double(), 6, padding=1, padding_mode="circular").spectrum()
    torch.testing.assert_close(spectrum.values, exact.values, rtol=0, atol=1e-12)
    assert conv_operator(kernel, 6, padding=1).sigma_max().value == pytest.approx(float(
        torch.linalg.svdvals(matrix(conv_operator(kernel, 6, padding=1)))[0]), rel=1e-4)  # fmt: skip
