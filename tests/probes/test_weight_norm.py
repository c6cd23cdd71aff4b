"""Weight norms and their average, against sums of squares in float64."""

import math

import pytest
import torch
from probes.moment import moment, read
from torch import nn

from leadline import models
from leadline.probes import layers
from leadline.probes.weight_norm import WeightNorm


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_the_root_of_the_sum_of_squares(dtype: torch.dtype) -> None:
    model = models.create("resnet-20", widths=[4, 4, 8]).to(dtype)
    found = read(WeightNorm(), moment(model, torch.randn(2, 3, 8, 8, dtype=dtype)))
    weights = [p for p in model.parameters() if p.ndim >= 2]
    wanted = [math.sqrt(math.fsum(float(w) ** 2 for w in weight.detach().double().flatten())) for weight in weights]
    assert found["norm"].value == pytest.approx(wanted, rel=1e-12 if dtype == torch.float64 else 1e-6)
    assert found["average"].value == pytest.approx(sum(wanted) / len(wanted), rel=1e-6)


def test_tied_weights_count_once_and_embeddings_not() -> None:
    model = nn.Sequential(nn.Embedding(5, 3), nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 5))
    model[2].weight = model[1].weight
    found = read(WeightNorm(), moment(model, torch.arange(4)))
    assert [layer.name for layer in layers(model)] == ["1", "3"]
    assert found["norm"].value == pytest.approx([float(model[k].weight.detach().norm()) for k in (1, 3)])


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_weights_that_are_no_numbers(value: float) -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 2))
    with torch.no_grad():
        model[1].weight[0, 0] = value
    found = read(WeightNorm(), moment(model, torch.randn(4, 2)))
    assert math.isfinite(found["norm"].value[0]) and not math.isfinite(found["norm"].value[1])
    assert found["norm"].notes == {1: "some of the weights are not finite"} and found["average"].notes


def test_without_weights() -> None:
    found = read(WeightNorm(), moment(nn.Flatten(), torch.randn(2, 3)))
    assert all("no weights" in reading.notes[-1] for reading in found.values())
