"""Stride, dilation and groups as a convolution of stride one: there and back, and the same outputs."""

import pytest
import torch
from torch.nn import functional as F

from leadline.linalg.polyphase import layout

GEOMETRIES = [
    ((6, 4, 3, 3), (1, 1), (1, 1), 1),
    ((6, 2, 3, 3), (2, 2), (1, 1), 2),
    ((4, 2, 7, 5), (2, 3), (1, 1), 1),
    ((4, 2, 3, 3), (1, 2), (2, 3), 2),
    ((4, 3, 4, 4), (4, 4), (1, 1), 1),
    ((4, 3, 1, 1), (2, 2), (1, 1), 1),
    ((4, 3, 5), (3,), (1,), 1),
    ((2, 2, 3, 2, 3), (2, 1, 2), (1, 1, 1), 1),
]


@pytest.mark.parametrize(("shape", "stride", "dilation", "groups"), GEOMETRIES)
def test_taps_and_back_is_the_kernel(
    shape: tuple[int, ...], stride: tuple[int, ...], dilation: tuple[int, ...], groups: int
) -> None:
    form = layout(shape, stride=stride, dilation=dilation, groups=groups)
    kernel = torch.randn(shape)
    taps = form.taps(kernel)
    assert torch.equal(form.kernel(taps), kernel)
    assert float(taps.square().sum()) == pytest.approx(float(kernel.square().sum()), rel=1e-5)
    assert taps.shape[1:] == (groups, *form.matrix)


@pytest.mark.parametrize("k", [1, 2, 3, 5])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_taps_convolve_the_interleaved_maps(k: int, stride: int) -> None:
    kernel = torch.randn(3, 2, k, dtype=torch.float64)
    form = layout(tuple(kernel.shape), stride=(stride,), dilation=(1,))
    x = torch.randn(1, 2, 6 * stride + k, dtype=torch.float64)
    phases = torch.stack([x[..., phase::stride][..., : 6 + form.axes[0] - 1] for phase in range(form.reads[0])], 2)
    taps = form.taps(kernel)[:, 0].permute(1, 2, 0)  # (rows, columns, taps)
    found = F.conv1d(phases.flatten(1, 2), taps)
    torch.testing.assert_close(found, F.conv1d(x, kernel, stride=stride)[..., : found.shape[-1]])


def test_a_single_tap_where_patches_do_not_overlap() -> None:
    for shape, stride in (((4, 3, 1, 1), (2, 2)), ((4, 3, 4, 4), (4, 4)), ((4, 3, 2, 2), (3, 3))):
        assert layout(shape, stride=stride, dilation=(1, 1)).axes == (1, 1)
