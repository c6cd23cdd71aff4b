"""Kernels that are norm-preserving by construction, square ones included."""

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrize

from leadline.core.errors import UsageError
from leadline.linalg.conv_operator import of
from leadline.projections import isometry, orthogonal
from leadline.projections.norm_preserving import deviation
from leadline.projections.shape_changes import Conv

MAKES = [
    lambda: nn.Conv2d(8, 8, 3),
    lambda: nn.Conv2d(7, 7, 3),
    lambda: nn.Conv2d(4, 9, (3, 5)),
    lambda: nn.Conv2d(9, 4, 3, dilation=2),
    lambda: nn.Conv2d(8, 8, 3, groups=2),
    lambda: nn.Conv2d(4, 4, 3, groups=4),
    lambda: nn.Conv2d(3, 16, 4, stride=4),
    lambda: nn.Conv2d(8, 4, 1, stride=2),
    lambda: nn.Conv1d(6, 6, 4),
    lambda: nn.Conv3d(4, 4, 2),
]


def off(conv: Conv) -> float:
    shape = tuple(conv.weight.shape)
    return deviation(conv.weight, isometry(shape, stride=conv.stride, dilation=conv.dilation, groups=conv.groups))


@pytest.mark.parametrize("make", MAKES)
@pytest.mark.parametrize(("dtype", "limit"), [(torch.float32, 2e-6), (torch.float64, 1e-14)])
def test_all_singular_values_are_at_the_target(make: object, dtype: torch.dtype, limit: float) -> None:
    conv = orthogonal(make().to(dtype))  # type: ignore[operator]
    assert off(conv) < limit
    full = of(conv, 12 if conv.weight.ndim < 5 else 6)
    spectrum = full.spectrum() if full.is_one_matrix else full.on_torus().spectrum()
    assert float(spectrum.values.std()) < limit * float(spectrum.values.mean())


def test_training_stays_on_the_set_and_changes_the_kernel() -> None:
    conv = orthogonal(nn.Conv2d(6, 6, 3, padding=1, padding_mode="circular", bias=False))
    optimizer = torch.optim.SGD(conv.parameters(), lr=0.5, momentum=0.9)
    x, y = torch.randn(8, 6, 8, 8), torch.randn(8, 6, 8, 8)
    first, losses = conv.weight.detach().clone(), []
    for _ in range(20):
        optimizer.zero_grad()
        loss = (conv(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        assert off(conv) < 5e-6
        assert (conv(x).norm() / x.norm()).item() == pytest.approx(1.0, abs=1e-5)
    assert losses[-1] < losses[0]
    assert ((conv.weight - first).norm() / first.norm()).item() > 0.1


def test_gradients_are_those_of_finite_differences() -> None:
    conv = orthogonal(nn.Conv1d(3, 4, 3, dtype=torch.float64))
    kernel = conv.parametrizations.weight[0]  # type: ignore[index, union-attr]
    frame, planes = (p.detach().requires_grad_() for p in conv.parametrizations.weight.parameters())  # type: ignore
    torch.autograd.gradcheck(kernel, (frame, planes))


def test_state_is_saved_and_loaded_exactly() -> None:
    one, other = (orthogonal(nn.Conv2d(4, 8, 3), seed=seed) for seed in (1, 2))
    other.load_state_dict(one.state_dict())
    assert torch.equal(one.weight, other.weight)


def test_the_parametrisation_can_be_removed() -> None:
    conv = orthogonal(nn.Conv2d(8, 8, 3))
    kernel = conv.weight.detach().clone()
    parametrize.remove_parametrizations(conv, "weight")
    assert torch.equal(conv.weight, kernel)
    assert isinstance(conv.weight, nn.Parameter)


def test_the_sum_of_the_taps_is_kept_as_far_as_it_can_be() -> None:
    """K(1) = t H: an isometric sum of taps stays what it was."""
    conv = nn.Conv2d(4, 8, 3)
    with torch.no_grad():
        conv.weight.copy_(orthogonal(nn.Conv2d(4, 8, 3), seed=5).weight)
    before = conv.weight.sum((2, 3)).detach()
    torch.testing.assert_close(orthogonal(conv).weight.sum((2, 3)), before, rtol=0, atol=1e-5)


def test_under_autocast_and_in_bfloat16() -> None:
    conv = orthogonal(nn.Conv2d(8, 8, 3))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert off(conv) < 2e-6
        assert conv(torch.randn(1, 8, 8, 8)).dtype == torch.bfloat16
    assert off(orthogonal(nn.Conv2d(8, 8, 3, dtype=torch.bfloat16))) < 0.02


def test_strides_that_overlap_are_refused() -> None:
    with pytest.raises(UsageError, match="stride 1"):
        orthogonal(nn.Conv2d(4, 8, 3, stride=2))
    with pytest.raises(UsageError, match="Linear"):
        orthogonal(nn.Linear(4, 8))  # type: ignore[arg-type]
