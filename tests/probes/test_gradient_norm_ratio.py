"""Gradient norms per block, against autograd cut open at every boundary."""

import math

import numpy as np
import pytest
import torch
from foreign import InPlaceResNet, Twice, build
from probes.moment import moment, read
from torch import Tensor, nn
from torch.nn import functional as F

from leadline import models
from leadline.probes.gradient_norm_ratio import GradientNormRatio, is_transition

PROBE = GradientNormRatio()


def batch(size: int, *, channels: int = 3) -> tuple[Tensor, Tensor]:
    return torch.randn(6, channels, size, size, dtype=torch.float64), torch.arange(6) % 10


def norms_at(pieces: list[nn.Module], x: Tensor, y: Tensor) -> list[float]:
    """||dE/dx_l|| where x_l goes into piece l, by cutting the chain there: each x_l is a leaf of its own."""
    found = []
    for cut in range(len(pieces)):
        with torch.no_grad():
            value = x
            for piece in pieces[:cut]:
                value = piece(value)
        start = value.clone().requires_grad_()
        value = start.clone()
        for piece in pieces[cut:]:
            value = piece(value)
        (gradient,) = torch.autograd.grad(F.cross_entropy(value, y), [start])
        found.append(float((gradient**2).sum().sqrt()))
    return found


def test_a_chain_cut_open_at_every_boundary() -> None:
    model, (x, y) = models.create("resnet-20", widths=[4, 4, 8]).double().eval(), batch(8)
    found = read(PROBE, moment(model, x, y, F.cross_entropy, probe=PROBE))
    pieces = [model.stem, *model.blocks, model.head]
    wanted = np.array(norms_at(pieces, x, y)[1:])
    ratio = wanted[1:] / wanted[:-1]
    np.testing.assert_allclose(found["norm"].value, wanted[:-1], rtol=1e-10)
    np.testing.assert_allclose(found["ratio"].value, ratio, rtol=1e-10)
    np.testing.assert_allclose(found["product"].value, [math.prod(ratio[:k]) for k in range(1, 10)], rtol=1e-10)
    assert found["ratio/transition"].value == pytest.approx(math.sqrt(ratio[3] * ratio[6]), rel=1e-10)
    others = np.delete(ratio, [3, 6])
    assert found["ratio/non-transition"].value == pytest.approx(math.prod(others) ** (1 / 7), rel=1e-10)
    design = np.stack([np.arange(10), np.ones(10)], axis=1)
    line = np.linalg.lstsq(design, np.log10(wanted / wanted[0]), rcond=None)[0]
    assert found["slope"].value == pytest.approx(line[0], rel=1e-10)


def test_somebody_elses_in_place_network() -> None:
    foreign = build("inplace_resnet")
    model, (x, y) = foreign.model.double().eval(), batch(16)
    assert isinstance(model, InPlaceResNet)
    found = read(PROBE, moment(model, x, y, F.cross_entropy, probe=PROBE))
    head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), model.fc)
    wanted = np.array(norms_at([nn.Sequential(model.stem, nn.ReLU()), *model.blocks, head], x, y)[1:])
    np.testing.assert_allclose(found["ratio"].value, wanted[1:] / wanted[:-1], rtol=1e-10)


def test_calls_of_one_module_are_told_apart() -> None:
    model, (x, y) = Twice().double().eval(), batch(8)
    found = read(PROBE, moment(model, x, y, F.cross_entropy, probe=PROBE))
    head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), model.fc)
    wanted = np.array(norms_at([model.stem, model.shared, model.shared, model.last, head], x, y)[1:])
    np.testing.assert_allclose(found["ratio"].value, wanted[1:] / wanted[:-1], rtol=1e-10)


def test_shapes_that_change_make_a_transition_even_without_a_skip() -> None:
    model = models.create("plainnet-20", widths=[4, 4, 8]).double()
    at = moment(model, *batch(8), F.cross_entropy, probe=PROBE)
    assert [k for k, block in enumerate(at.anatomy.blocks) if is_transition(block)] == [3, 6]


@pytest.mark.parametrize(
    ("factor", "note"),
    [(math.nan, "not finite"), (math.inf, "not finite"), (0.0, "the gradient is zero")],
    ids=["nan", "inf", "zero"],
)
def test_a_broken_head_is_said_in_words(factor: float, note: str) -> None:
    model = models.create("resnet-20", widths=[4, 4, 8]).double()
    with torch.no_grad():
        model.head[-1].weight.mul_(factor)
    found = read(PROBE, moment(model, *batch(8), F.cross_entropy, probe=PROBE))
    assert all(math.isnan(value) and note in found["ratio"].notes[k] for k, value in enumerate(found["ratio"].value))
    assert math.isnan(found["slope"].value) and found["slope"].notes[-1] == "no block was measured"


def test_a_gradient_that_dies_in_one_block() -> None:
    """A block that cuts its input off: an infinite ratio there, and none before it, where nothing arrives."""

    class Deaf(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            return x * 0 + torch.tanh(self.linear(x.detach() * 0) + x * 0)

    layers = [nn.Linear(4, 4), *(nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(3)), nn.Linear(4, 4)]
    layers.insert(2, Deaf())
    model = nn.Sequential(*layers).double()
    x, y = torch.randn(5, 4, dtype=torch.float64), torch.arange(5) % 4
    at = moment(model, x, y, F.cross_entropy, probe=PROBE)
    found = read(PROBE, at)
    ratio, notes = found["ratio"].value, found["ratio"].notes
    place = [block.name for block in at.anatomy.blocks].index("2")
    assert math.isinf(ratio[place]) and "at the input" in notes[place]
    assert all(math.isnan(value) and "at both sides" in notes[k] for k, value in enumerate(ratio[:place]))
    assert all(math.isfinite(value) for value in ratio[place + 1 :])


def test_frozen_beginnings_and_models_without_blocks() -> None:
    model = models.create("resnet-20", widths=[4, 4, 8]).double()
    model.stem.requires_grad_(False)
    found = read(PROBE, moment(model, *batch(8), F.cross_entropy, probe=PROBE))
    assert math.isnan(found["ratio"].value[0]) and "does not require a gradient" in found["ratio"].notes[0]
    assert all(math.isfinite(value) for value in found["ratio"].value[1:])
    nothing = read(PROBE, moment(nn.Flatten(), torch.randn(2, 3)))
    assert nothing["ratio"].notes == {-1: "the model has no parameters"}


def test_the_stem_by_the_gradient_at_the_input() -> None:
    probe = GradientNormRatio(stem=True)
    model, (x, y) = models.create("procresnet-13", widths=[2, 2, 4]).double().eval(), batch(8)
    found = read(probe, moment(model, x.requires_grad_(), y, F.cross_entropy, probe=probe))
    wanted = norms_at([model.stem, *model.blocks, model.head], x.detach(), y)
    assert found["ratio/stem"].value == pytest.approx(wanted[1] / wanted[0], rel=1e-10)
    silent = read(probe, moment(model, x.detach(), y, F.cross_entropy, probe=probe))["ratio/stem"]
    assert math.isnan(float(silent.value)) and "does not require a gradient" in silent.notes[-1]  # type: ignore[arg-type]
