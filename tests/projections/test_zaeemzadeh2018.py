"""The published projection and the released one: what each does to 1x1 kernels and to a 3x3 stem."""

import math

import pytest
import torch
from torch import Tensor, nn

from leadline.core.errors import UsageError
from leadline.linalg.conv_operator import conv_operator
from leadline.projections import Procrustes, deviation, isometry, project
from leadline.projections.zaeemzadeh2018 import Algorithm1, printed, released


def he(d: int, c: int, k: int) -> Tensor:
    return torch.randn(d, c, k, k) * math.sqrt(2 / (c * k * k))


@pytest.mark.parametrize("shape", [(16, 8), (8, 16)])
@pytest.mark.parametrize("method", [printed, released])
def test_on_1x1_kernels_both_agree_with_one_matrix(shape: tuple[int, int], method: object) -> None:
    kernel = he(*shape, 1)
    onto = isometry(tuple(kernel.shape), stride=(2, 2), dilation=(1, 1))
    found = method(kernel, 8, iterations=25)  # type: ignore[operator]
    torch.testing.assert_close(found, project(kernel, onto), rtol=0, atol=1e-5)


def test_as_printed_without_scaling_it_diverges() -> None:
    kernel = he(64, 3, 3)
    assert not torch.isfinite(printed(kernel, 32, iterations=20, scaled=False)).all()
    assert torch.isfinite(printed(kernel, 32)).all()


def test_the_crop_is_no_projection_and_alternating_approaches_one() -> None:
    kernel = he(64, 3, 3)
    onto = isometry(tuple(kernel.shape), stride=(1, 1), dilation=(1, 1))
    spread = []
    for _ in range(20):
        kernel = printed(kernel, 32)
        sigma = conv_operator(kernel, 32, padding=1, padding_mode="circular").spectrum().values
        spread.append(float(sigma.max() - sigma.min()) / onto.target)
    assert 0.15 < spread[0] < 0.4
    assert spread[-1] < 0.03
    assert deviation(project(kernel, onto), onto) < 1e-3


def test_the_release_leaves_one_tap_of_a_stem() -> None:
    kernel = he(64, 3, 3)
    for _ in range(3):
        kernel = released(kernel, 32)
    taps = kernel.square().sum((0, 1)).sqrt().flatten()
    assert taps.argmax() in (0, 8)
    assert float(taps.max()) == pytest.approx(8.0, rel=0.01)
    assert float(taps.sort().values[-2]) < 0.3
    kernel = he(64, 3, 3)
    for _ in range(3):
        kernel = printed(kernel, 32)
    assert float(kernel.square().sum((0, 1)).sqrt().min()) > 2


def test_it_attaches_like_procrustes() -> None:
    convs = {"stem": nn.Conv2d(3, 16, 3, bias=False), "down": nn.Conv2d(16, 32, 1, bias=False)}
    optimizer = torch.optim.SGD([conv.weight for conv in convs.values()], lr=0.1)
    paper = Algorithm1(convs, method="printed", maps={"stem": 8, "down": 4}).attach(optimizer)
    assert isinstance(paper, Procrustes)
    assert paper.deviations()["down"] < 1e-4
    for _ in range(2):
        for conv in convs.values():
            conv.weight.grad = torch.randn_like(conv.weight)
        optimizer.step()
    assert paper.steps == 2
    assert paper.deviations()["down"] < 1e-4
    assert 1e-3 < paper.deviations()["stem"] < 0.5


def test_names_and_maps_are_checked() -> None:
    with pytest.raises(UsageError, match="unknown method 'eq9'"):
        Algorithm1([nn.Conv2d(3, 4, 1)], method="eq9", maps={"0": 4})
    with pytest.raises(UsageError, match="map size of every kernel; got none for 0"):
        Algorithm1([nn.Conv2d(3, 4, 1)], method="printed", maps={})


def test_before_a_relu_both_take_the_factor_of_the_paper() -> None:
    conv = nn.Conv2d(8, 16, 1, bias=False)
    for method in ("printed", "released"):
        paper = Algorithm1({"conv": conv}, method=method, maps={"conv": 4}, relu=True)
        (found,) = paper.project()
        assert found.target == pytest.approx(2.0)
        assert found.after < 1e-4
