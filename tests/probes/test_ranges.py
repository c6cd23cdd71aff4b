"""Ranges of weights, gradients and activations, against numpy on all the values."""

import math

import numpy as np
import pytest
import torch
from foreign import build
from probes.moment import moment, read
from torch import Tensor, nn
from torch.nn import functional as F

from leadline.probes import Moment, Probe, Reading
from leadline.probes._spread import SAMPLE, merged, sketch
from leadline.probes.activation_range import ActivationRange
from leadline.probes.gradient_range import GradientRange
from leadline.probes.output_range import OutputRange
from leadline.probes.weight_range import WeightRange


def layered(*, bias: bool = True) -> nn.Sequential:
    """Eight blocks whose weights and activations have fewer values than a sample, so that percentiles are exact."""
    return nn.Sequential(*(nn.Sequential(nn.Linear(6, 6, bias=bias), nn.Tanh()) for _ in range(8))).double()


def batch() -> tuple[Tensor, Tensor]:
    return torch.randn(5, 6, dtype=torch.float64), torch.arange(5)


def check(found: dict[str, Reading], place: int, values: Tensor) -> None:
    """Every reading of one place against the whole of its values."""
    numbers = values.detach().double().numpy().ravel()
    assert found["min"].value[place] == pytest.approx(numbers.min())
    assert found["max"].value[place] == pytest.approx(numbers.max())
    for k in (1, 5, 25, 50, 75, 95, 99):
        assert found[f"p{k:02}"].value[place] == pytest.approx(np.quantile(numbers, k / 100), abs=1e-15)
    edges = np.linspace(numbers.min(), numbers.max(), 17)
    for k in range(16):
        inside = (numbers >= edges[k]) & ((numbers < edges[k + 1]) if k < 15 else (numbers <= edges[16]))
        assert found[f"histogram/{k:02}"].value[place] == pytest.approx(inside.mean())


def at_a_step(model: nn.Module, probe: Probe) -> Moment:
    x, y = batch()
    at = moment(model, x, y, F.cross_entropy, probe=probe)
    F.cross_entropy(model(x), y).backward()
    return at


def test_weights() -> None:
    model = layered()
    found = read(WeightRange(), at_a_step(model, WeightRange()))
    for place, block in enumerate(model):
        check(found, place, block[0].weight)


def test_gradients_by_the_weights() -> None:
    model = layered()
    found = read(GradientRange(), at_a_step(model, GradientRange()))
    for place, block in enumerate(model):
        check(found, place, block[0].weight.grad)


def test_activations_of_all_micro_batches() -> None:
    model, probe = layered(), ActivationRange()
    at = at_a_step(model, probe)
    value, found = at.inputs.args[0], read(probe, at)
    boundaries = [value] + [value := block(value) for block in model]
    assert len(at.anatomy.boundaries) == len(boundaries)
    for place, boundary in enumerate(boundaries):
        check(found, place, boundary)
    halves = [sketch(part).numpy() for part in boundaries[3].detach().chunk(2)]
    whole = sketch(boundaries[3]).numpy()
    np.testing.assert_array_equal(np.sort(merged(halves)), np.sort(whole))


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_a_sample_stands_for_all(layout: torch.memory_format) -> None:
    """Two million normal numbers with rows and channels of their own: exact extremes, percentiles to sampling error."""
    numbers = torch.randn(32, 64, 32, 32, dtype=torch.float64)
    numbers += torch.linspace(-1, 1, 64, dtype=torch.float64)[:, None, None] + torch.linspace(-1, 1, 32)[:, None]
    found = sketch(numbers.to(memory_format=layout)).numpy()
    assert len(found) == 2 + SAMPLE
    assert found[0] == numbers.min() and found[1] == numbers.max()
    for k in (1, 50, 99):
        rank = (numbers <= np.percentile(found[2:], k)).double().mean().item()
        assert abs(rank - k / 100) < 5 * math.sqrt(k * (100 - k)) / 100 / math.sqrt(SAMPLE)


def test_no_two_of_a_sample_are_the_same_value() -> None:
    for count in (SAMPLE + 1, 3 * 2**15, 2**18, 720720, 1_000_003):
        picked = sketch(torch.arange(count, dtype=torch.float64))[2:]
        assert len(picked.unique()) == SAMPLE


@pytest.mark.parametrize("probe", [WeightRange(), GradientRange(), ActivationRange()], ids=lambda p: type(p).__name__)
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_values_that_are_no_numbers(probe: Probe, value: float) -> None:
    model = layered(bias=False)
    with torch.no_grad():
        model[2][0].weight[0, 0] = value
        model[3][0].weight[0, 0] = 1e300  # tanh'(inf) 1e300 inf
    found = read(probe, at_a_step(model, probe))["min"]
    said = {note for note in found.notes.values() if note}
    assert said <= {"some of its values are not numbers", "some of its values are infinite"}
    assert said or isinstance(probe, ActivationRange)  # tanh(inf) is 1
    assert all(math.isfinite(low) or place in found.notes for place, low in enumerate(found.value))


def test_zeros_have_a_range() -> None:
    model = layered(bias=False)
    nn.init.zeros_(model[2][0].weight)
    for probe, place in ((WeightRange(), 2), (ActivationRange(), 3)):
        found = read(probe, at_a_step(model, probe))
        assert all(found[name].value[place] == 0.0 for name in ("min", "max", "p01", "p50"))
        assert sum(found[f"histogram/{k:02}"].value[place] for k in range(16)) == 1.0


def test_half_precision_frozen_unused_and_sparse() -> None:
    model = build("twice").model.bfloat16()
    model.last.requires_grad_(False)
    x = torch.randn(4, 3, 8, 8, dtype=torch.bfloat16)
    F.cross_entropy(model(x).float(), torch.arange(4)).backward()
    at = moment(model, x)
    ranges, weights = read(GradientRange(), at), read(WeightRange(), at)
    missing = [place for place, low in enumerate(ranges["min"].value) if math.isnan(low)]
    assert missing and all("no gradient" in ranges["min"].notes[place] for place in missing)
    assert not any(map(math.isnan, weights["min"].value))
    assert max(weights["max"].value) == max(float(p.detach().max()) for p in model.parameters() if p.ndim > 1)


def test_nothing_to_range_over() -> None:
    nothing = moment(nn.Flatten(), torch.randn(2, 3))
    for probe, why in (
        (WeightRange(), "no weights"),
        (GradientRange(), "no weights"),
        (ActivationRange(), "parameters"),
    ):
        found = read(probe, nothing)
        assert list(found) == ["min"] and why in found["min"].notes[-1]


def test_outputs_of_every_layer_before_its_activation() -> None:
    model = layered()
    at = at_a_step(model, OutputRange(samples=3))
    value, found = at.inputs.args[0][:3], read(OutputRange(samples=3), at)
    for place, block in enumerate(model):
        check(found, place, block[0](value))
        value = block(value)
