"""Projected kernels: their singular values as operators, the distance moved, and what is refused."""

import math

import pytest
import torch
from torch import Tensor

from leadline.core.errors import UsageError
from leadline.linalg.conv_spectrum import symbol_spectrum
from leadline.projections.norm_preserving import Isometry, correct, deviation, isometry, project, tangent

KERNELS = [
    ((64, 3, 3, 3), 1, 1, 1),
    ((16, 4, 3, 3), 1, 1, 1),
    ((32, 16, 3, 3), 1, 1, 1),
    ((16, 32, 3, 3), 1, 1, 1),
    ((16, 8, 3, 3), 2, 1, 1),
    ((24, 8, 3, 3), 1, 2, 2),
    ((16, 3, 5, 5), 2, 1, 1),
    ((20, 3, 5, 3), 1, 1, 1),
    ((12, 12, 3), 1, 1, 1),
    ((6, 4, 2, 2, 2), 1, 1, 1),
    ((24, 3, 4, 4), 4, 1, 1),
    ((16, 8, 1, 1), 2, 1, 1),
    ((8, 16, 1, 1), 1, 1, 2),
]


def made(shape: tuple[int, ...], stride: int = 1, dilation: int = 1, groups: int = 1) -> tuple[Tensor, Isometry]:
    dims = len(shape) - 2
    onto = isometry(shape, stride=(stride,) * dims, dilation=(dilation,) * dims, groups=groups)
    return torch.randn(shape), onto


def on_every_map(kernel: Tensor, onto: Isometry) -> float:
    """The largest |sigma / t - 1| on maps of several sizes, none of them the grid that was projected on."""
    dims = len(onto.layout.axes)
    grids = [(n,) * dims for n in ((7, 16, 20) if dims < 3 else (7,))]
    each = [symbol_spectrum(kernel, onto.layout, grid).values / onto.target - 1 for grid in grids]
    return max(float(one.abs().max()) for one in each)


@pytest.mark.parametrize(("shape", "stride", "dilation", "groups"), KERNELS)
def test_the_kernel_itself_has_its_singular_values_at_the_target(
    shape: tuple[int, ...], stride: int, dilation: int, groups: int
) -> None:
    kernel, onto = made(shape, stride, dilation, groups)
    found = project(kernel, onto)
    assert found.shape == kernel.shape
    assert on_every_map(found, onto) < (1e-6 if onto.is_matrix else 2e-3)
    assert deviation(found, onto) == pytest.approx(on_every_map(found, onto), rel=0.25, abs=1e-6)


@pytest.mark.parametrize(("c", "d"), [(3, 64), (64, 128), (128, 64)])
def test_the_target_is_that_of_the_paper(c: int, d: int) -> None:
    """sqrt(d / min(c, d)), times sqrt(2) before a ReLU; the stride of a 1x1 kernel does not enter."""
    for stride in (1, 2):
        plain = isometry((d, c, 1, 1), stride=(stride,) * 2, dilation=(1, 1))
        assert plain.target == pytest.approx(math.sqrt(d / min(c, d)))
        relu = isometry((d, c, 1, 1), stride=(stride,) * 2, dilation=(1, 1), relu=True)
        assert relu.target == pytest.approx(math.sqrt(2 * d / min(c, d)))


@pytest.mark.parametrize(("shape", "stride"), [((64, 16, 3, 3), 1), ((32, 16, 3, 3), 2), ((32, 16, 1, 1), 2)])
def test_the_expected_norm_of_gradients_is_kept(shape: tuple[int, ...], stride: int) -> None:
    """Eq. (7): E |W^T y|^2 = E |y|^2 for y white over the output, whatever part of it W does not see."""
    kernel, onto = made(shape, stride)
    sigma = symbol_spectrum(project(kernel, onto), onto.layout, (8, 8))
    energy = float((sigma.values.square() * sigma.multiplicity[:, None]).sum())
    assert energy == pytest.approx(shape[0] * 64, rel=1e-3)


def test_a_kernel_that_is_there_is_left_exactly_as_it_is() -> None:
    for shape in ((64, 3, 3, 3), (32, 16, 3, 3)):
        kernel, onto = made(shape)
        once = project(kernel, onto)
        assert torch.equal(project(once, onto), once)
    kernel, onto = made((32, 16, 1, 1))
    once = project(kernel, onto)
    assert float((project(once, onto) - once).abs().max()) < 1e-6


@pytest.mark.parametrize("scale", [1e-30, 1e-3, 1e3, 1e30])
@pytest.mark.parametrize("shape", [(16, 4, 3, 3), (16, 8, 1, 1)])
def test_any_scale(scale: float, shape: tuple[int, ...]) -> None:
    kernel, onto = made(shape)
    assert deviation(project(kernel * scale, onto), onto) < 2e-3


def test_float64_kernels_are_projected_in_float64() -> None:
    kernel, onto = made((16, 4, 1, 1))
    assert deviation(project(kernel.double(), onto), onto) < 1e-14


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("shape", [(16, 4, 3, 3), (16, 8, 1, 1)])
def test_half_precision_kernels_are_as_near_as_their_rounding(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    kernel, onto = made(shape)
    found = project(kernel.to(dtype), onto)
    assert found.dtype == dtype
    assert deviation(found, onto) < 2e-3 + 2 * torch.finfo(dtype).eps


def test_it_is_nearer_than_an_orthogonal_matrix_in_the_kernels_shape() -> None:
    """d >= k^2 c admits t / k times an orthogonal d x k^2 c matrix: on the set, but not the nearest there."""
    kernel, onto = made((64, 3, 3, 3))
    kernel = kernel * onto.target / float(symbol_spectrum(kernel, onto.layout, (8, 8)).values.mean())
    found = project(kernel, onto)
    left, _, right = torch.linalg.svd(kernel.flatten(1), full_matrices=False)
    reshaped = (left @ right * onto.target / 3).view_as(kernel)
    assert deviation(reshaped, onto) < 1e-6
    assert torch.linalg.vector_norm(found - kernel) < torch.linalg.vector_norm(reshaped - kernel)


@pytest.mark.parametrize("shape", [(64, 3, 3, 3), (32, 16, 3, 3), (32, 16, 1, 1)])
def test_a_step_off_the_set_is_taken_back(shape: tuple[int, ...]) -> None:
    kernel, onto = made(shape)
    on = project(kernel, onto)
    step = torch.randn(shape)
    off = on + 0.01 * step * torch.linalg.vector_norm(on) / torch.linalg.vector_norm(step)
    back = correct(off, onto)
    assert deviation(back, onto) < (1e-6 if onto.is_matrix else 2e-3) < deviation(off, onto)
    assert torch.linalg.vector_norm(back - off) < torch.linalg.vector_norm(on - off)
    one_product = correct(off, onto, rounds=1, steps=0)
    assert deviation(one_product, onto) < 0.6 * deviation(off, onto)


def test_a_kernel_torn_away_is_projected_afresh() -> None:
    kernel, onto = made((32, 16, 3, 3))
    assert torch.equal(correct(100 * kernel, onto), project(100 * kernel, onto))


@pytest.mark.parametrize("shape", [(64, 4, 3, 3), (32, 16, 1, 1), (16, 32, 1, 1)])
def test_along_the_tangent_the_set_is_left_to_second_order_only(shape: tuple[int, ...]) -> None:
    kernel, onto = made(shape)
    on = project(kernel, onto)
    gradient = torch.randn(shape)
    along = tangent(gradient, on, onto)
    for size in (1e-2, 5e-3):
        plain = deviation(on + size * gradient, onto)
        assert deviation(on + size * along, onto) < 0.15 * plain
    assert torch.linalg.vector_norm(along) < torch.linalg.vector_norm(gradient)
    again = tangent(along, on, onto)
    assert torch.linalg.vector_norm(again - along) < 0.05 * torch.linalg.vector_norm(along)


def test_the_tangent_of_a_matrix_is_the_closed_form() -> None:
    """G - X sym(X^T G) for X^T X = I."""
    onto = isometry((8, 4, 1, 1), stride=(1, 1), dilation=(1, 1))
    kernel = project(torch.randn(8, 4, 1, 1, dtype=torch.float64), onto)
    gradient = torch.randn(8, 4, 1, 1, dtype=torch.float64)
    x, g = kernel.flatten(1) / onto.target, gradient.flatten(1)
    inner = x.T @ g
    expected = g - x @ (inner + inner.T) / 2
    torch.testing.assert_close(tangent(gradient, kernel, onto).flatten(1), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("shape", "stride", "groups"),
    [((8, 8, 3, 3), 1, 1), ((8, 8, 2, 3), 1, 1), ((32, 8, 3, 3), 2, 1), ((4, 1, 3, 3), 1, 4)],
)
def test_square_kernels_are_refused_with_a_way_out(shape: tuple[int, ...], stride: int, groups: int) -> None:
    kernel, onto = made(shape, stride, 1, groups)
    with pytest.raises(UsageError, match=r"square.*leadline\.projections\.orthogonal"):
        project(kernel, onto)


def test_square_kernels_have_a_frequency_that_no_small_change_repairs() -> None:
    """The reason for refusing: eq. (8) with the crop, repeated, leaves some singular value of 8 -> 8 far away."""
    kernel = torch.randn(8, 8, 3, 3, dtype=torch.float64)
    for _ in range(200):
        left, _, right = torch.linalg.svd(torch.fft.fft2(kernel, s=(8, 8)).permute(2, 3, 0, 1))
        kernel = torch.fft.ifft2((left @ right).permute(2, 3, 0, 1)).real[..., :3, :3]
    onto = isometry((8, 8, 3, 3), stride=(1, 1), dilation=(1, 1))
    assert float(symbol_spectrum(kernel, onto.layout, (32, 32)).values.min()) < 0.5


def test_rank_deficient_kernels_are_filled_up() -> None:
    kernel, onto = made((32, 16, 3, 3))
    kernel[:, 3] = 0
    assert deviation(project(kernel, onto), onto) < 2e-3


@pytest.mark.parametrize(
    ("value", "message"), [(math.nan, "NaN or infinite"), (math.inf, "NaN or infinite"), (0.0, "initialise it first")]
)
@pytest.mark.parametrize("shape", [(16, 4, 3, 3), (16, 4, 1, 1)])
def test_bad_kernels_are_one_clear_error(shape: tuple[int, ...], value: float, message: str) -> None:
    kernel, onto = made(shape)
    with pytest.raises(UsageError, match=message):
        project(kernel * 0 + value, onto)


def test_under_autocast_nothing_is_rounded_to_bfloat16() -> None:
    for shape, limit in (((32, 16, 1, 1), 1e-6), ((16, 4, 3, 3), 2e-3)):
        kernel, onto = made(shape)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            on = project(kernel, onto)
            assert deviation(on, onto) < limit
            assert deviation(correct(on + 1e-3 * torch.randn(shape), onto), onto) < limit
            assert tangent(kernel, on, onto).dtype == torch.float32
