"""Against NumPy's SVD of every unfolding, and the weights that have no ordinary condition number."""

import math

import numpy as np
import pytest
import torch
from foreign import build
from probes.moment import double, foreign_moment, moment, read
from torch import nn
from torch.nn.utils import parametrizations

from leadline import models
from leadline.models.dirac import DiracConv2d
from leadline.probes._layers import layers
from leadline.probes.weight_condition import WeightCondition


def unfolded_kappa(weight: np.ndarray, mode: int) -> float:
    sigma = np.linalg.svd(np.moveaxis(weight, mode, 0).reshape(weight.shape[mode], -1), compute_uv=False)
    return float(sigma[0] / sigma[-1])


@pytest.mark.parametrize("name", ["preactivation", "unet", "volumes", "lstm"])
def test_every_mode_of_every_weight(name: str) -> None:
    foreign = double(build(name))
    found = read(WeightCondition(), foreign_moment(foreign))
    for place, layer in enumerate(layers(foreign.model)):
        weight = layer.weight.numpy()
        expected = [unfolded_kappa(weight, mode) for mode in range(weight.ndim)]
        assert [found[f"kappa/mode{k}"].value[place] for k in range(weight.ndim)] == pytest.approx(expected, rel=1e-7)
        assert found["kappa"].value[place] == pytest.approx(max(expected), rel=1e-7)
        assert found["lost"].value[place] == 0


def of_weight(weight: torch.Tensor) -> dict[str, tuple[float, str]]:
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=False, dtype=weight.dtype)
    with torch.no_grad():
        layer.weight.copy_(weight)
    at = moment(nn.Sequential(layer), torch.ones(2, weight.shape[1], dtype=weight.dtype))
    return {name: (reading.value[0], reading.notes.get(0, "")) for name, reading in read(WeightCondition(), at).items()}


def test_singular_and_not_finite_weights_are_labelled() -> None:
    generator = torch.Generator().manual_seed(0)
    matrix = torch.randn(6, 4, generator=generator)
    twice = torch.cat([matrix, matrix[:, :1]], 1)
    value, note = of_weight(twice)["kappa"]
    assert value == math.inf and note.startswith("exactly singular, 1 lost")
    low_rank = torch.randn(6, 2, generator=generator) @ torch.randn(2, 5, generator=generator)
    value, note = of_weight(low_rank)["kappa"]
    assert 1e5 < value < 1e8 and note.startswith("> ") and "3 not told from zero in float32" in note
    assert of_weight(low_rank)["lost"][0] == 3
    assert of_weight(torch.zeros(3, 3))["kappa"][0] == math.inf
    for broken in (math.nan, math.inf):
        spoilt = matrix.clone()
        spoilt[1, 1] = broken
        value, note = of_weight(spoilt)["kappa"]
        assert math.isnan(value) and note == "not finite"
    assert of_weight(torch.full((1, 1), 3.0))["kappa"] == (1.0, "")
    value, note = of_weight(matrix.bfloat16())["kappa"]
    assert value == pytest.approx(float(np.linalg.cond(matrix.bfloat16().double().numpy())), rel=1e-9) and not note


def test_what_is_applied_is_measured() -> None:
    torch.manual_seed(0)
    orthogonal = parametrizations.orthogonal(nn.Linear(5, 5))
    assert read(WeightCondition(), moment(orthogonal, torch.ones(2, 5)))["kappa"].value == pytest.approx([1.0])
    spectral = parametrizations.spectral_norm(nn.Linear(5, 4))
    before = {name: buffer.clone() for name, buffer in spectral.named_buffers()}
    read(WeightCondition(), moment(spectral, torch.ones(2, 5)))
    assert all(torch.equal(before[name], buffer) for name, buffer in spectral.named_buffers())
    dirac = DiracConv2d(3, 3, 3, padding=1)
    found = read(WeightCondition(), moment(nn.Sequential(dirac), torch.ones(2, 3, 8, 8)))
    assert found["kappa/mode0"].value == pytest.approx([unfolded_kappa(dirac.kernel.detach().double().numpy(), 0)])


def test_layers_are_named_once_and_in_order() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.norm = nn.Embedding(7, 4), nn.LayerNorm([3, 4])
            self.attend = nn.MultiheadAttention(4, 2)
            self.head = nn.Linear(4, 7, bias=False)
            self.head.weight = self.embed.weight
            self.again = self.head

    assert [layer.name for layer in layers(Tied())] == ["attend.in_proj_weight", "attend.out_proj", "head"]
    names = [layer.name for layer in layers(models.create("resnet-20"))]
    assert len(names) == len(set(names)) and names[0].startswith("stem") and names[-1].startswith("head")


def test_a_weight_that_costs_too_much_is_left_out() -> None:
    found = read(
        WeightCondition(largest_side=3), moment(nn.Sequential(nn.Linear(4, 5), nn.Linear(5, 2)), torch.ones(2, 4))
    )
    assert found["kappa"].notes[0] == "its unfolding is 4 wide (largest_side is 3)"
    assert found["kappa"].value[1] >= 1
