"""Against the SVD of the dense matrix of every layer, built column by column from its own forward pass."""

import math

import numpy as np
import pytest
import torch
from foreign import build
from probes.moment import foreign_moment, moment, read
from torch import Tensor, nn
from torch.nn import functional as F

from leadline.probes.operator_condition import OperatorCondition


def dense_sigma(module: nn.Module, shape: tuple[int, ...], zeros: int = 0) -> np.ndarray:
    units = torch.eye(math.prod(shape), dtype=torch.float64).reshape(-1, *shape)
    matrix = module(units).detach().flatten(1).T.numpy()
    sigma = np.linalg.svd(matrix, compute_uv=False)
    return sigma[: len(sigma) - zeros]


def wrapped(x: Tensor, conv: nn.Conv2d) -> Tensor:
    """The convolution on a torus."""
    low, high = ((k - 1) // 2 for k in conv.kernel_size), (k // 2 for k in conv.kernel_size)
    (top, left), (bottom, right) = tuple(low), tuple(high)
    x = F.pad(x, (left, right, top, bottom), mode="circular")
    return F.conv2d(x, conv.weight, None, conv.stride, 0, conv.dilation, conv.groups)


CONVOLUTIONS = [
    (nn.Conv2d(2, 3, 3, padding=1), (2, 4, 6)),
    (nn.Conv2d(3, 2, 3, padding=1), (3, 5, 5)),
    (nn.Conv2d(2, 9, 3, stride=2, padding=1), (2, 4, 4)),
    (nn.Conv2d(4, 4, 3, padding=1, groups=2), (4, 4, 4)),
    (nn.Conv2d(2, 8, 2, stride=2), (2, 4, 6)),
    (nn.Conv2d(2, 5, 1), (2, 4, 4)),
]


@pytest.mark.parametrize(("conv", "shape"), CONVOLUTIONS, ids=lambda value: str(value))
def test_a_convolution_against_its_matrix(conv: nn.Conv2d, shape: tuple[int, ...]) -> None:
    conv = conv.double()
    at = moment(nn.Sequential(conv), torch.ones(2, *shape, dtype=torch.float64))
    found = read(OperatorCondition(), at)
    sigma = dense_sigma(lambda x: wrapped(x, conv), shape)  # type: ignore[arg-type]
    assert found["sigma_max"].value == pytest.approx([sigma[0]], rel=1e-10)
    assert found["sigma_min"].value == pytest.approx([sigma[-1]], rel=1e-6)
    assert found["kappa"].value == pytest.approx([sigma[0] / sigma[-1]], rel=1e-6)


def test_a_transposed_convolution_and_a_matrix() -> None:
    torch.manual_seed(0)
    up = nn.ConvTranspose2d(3, 2, 2, stride=2, bias=False).double()
    model = nn.Sequential(up, nn.Flatten(), nn.Linear(64, 5).double())
    found = read(OperatorCondition(), moment(model, torch.ones(2, 3, 2, 4, dtype=torch.float64)))
    sigma = dense_sigma(up, (3, 2, 4))
    assert found["sigma_max"].value[0] == pytest.approx(sigma[0], rel=1e-10)
    assert found["kappa"].value[0] == pytest.approx(sigma[0] / sigma[-1], rel=1e-8)
    assert found["kappa"].value[1] == pytest.approx(float(np.linalg.cond(model[2].weight.detach().numpy())), rel=1e-9)


def test_sizes_are_those_of_the_forward_pass_and_what_was_not_called_says_so() -> None:
    foreign = build("twice")
    found = read(OperatorCondition(), foreign_moment(foreign))["kappa"]
    assert all(value > 1 for value in found.value)

    class Functional(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.hidden = nn.Conv2d(2, 2, 3, padding=1), nn.Conv2d(2, 2, 3, padding=1)
            self.bilinear = nn.Bilinear(2, 2, 2)

        def forward(self, x: Tensor) -> Tensor:
            return F.conv2d(self.used(x), self.hidden.weight, padding=1)

    found = read(OperatorCondition(), moment(Functional(), torch.ones(1, 2, 4, 4)))["kappa"]
    assert found.notes[1].startswith("it was not called as a module")
    assert found.notes[2] == "neither a convolution nor a matrix"


def test_costs_are_bounded_and_broken_kernels_labelled() -> None:
    model = nn.Sequential(nn.Conv2d(2, 2, 3, padding=1), nn.Conv2d(2, 2, 3, 2), nn.Conv2d(2, 2, 3, padding=1))
    with torch.no_grad():
        model[2].weight[0, 0, 0, 0] = math.nan
    found = read(OperatorCondition(operations=10), moment(model, torch.ones(1, 2, 5, 5)))["kappa"]
    assert found.notes[0] == "it needs about 2e+03 operations (operations is 1e+01)"
    assert "stride that divides the map" in found.notes[1]
    assert "1 of 36 are NaN or infinite" in found.notes[2]
