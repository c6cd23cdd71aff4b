"""He initialisation: the right variance for every kind of layer, drawn without touching the global generator."""

import warnings
from collections.abc import Callable

import pytest
import torch
from foreign import build
from torch import Tensor, nn

from leadline import remedies
from leadline.core.errors import UsageError


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (nn.Linear(200, 300), (200,)),
        (nn.Conv1d(40, 60, 5, padding=2), (40, 32)),
        (nn.Conv2d(64, 128, 3, padding=1, groups=4), (64, 16, 16)),
        (nn.Conv3d(8, 80, 3, padding=1), (8, 9, 9, 9)),
        (nn.ConvTranspose2d(64, 32, 4, stride=2, padding=1, groups=2), (64, 12, 12)),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else "",
)
def test_the_power_of_the_output_is_twice_that_of_the_input(layer: nn.Module, shape: tuple[int, ...]) -> None:
    change = remedies.apply(nn.Sequential(layer), "he-init")
    assert dict(change.changed) == {"0": "weights from N(0, 2 / fan_in), biases zero"}
    y = layer(torch.randn(8, *shape))
    inner = y[(..., *[slice(2, -2)] * (y.ndim - 2))]  # away from the padding
    assert inner.square().mean().item() == pytest.approx(2, rel=0.06)


def test_weights_are_those_of_the_seed() -> None:
    def weights(**options: int) -> Tensor:
        model = nn.Sequential(nn.Linear(9, 7), nn.ReLU(), nn.Linear(7, 3))
        remedies.apply(model, "he-init", **options)
        return torch.cat([parameter.flatten() for parameter in model.parameters()])

    assert torch.equal(weights(), weights(seed=0)) and not torch.equal(weights(), weights(seed=1))


def test_what_it_must_not_touch_it_leaves_and_says() -> None:
    foreign = build("gpt2")
    change = remedies.apply(foreign.model, "he-init")
    assert change.no_op and "lm_head: it shares its weight with something that is no such layer" in str(change)
    model = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(3, 3)), nn.BatchNorm1d(3), nn.Linear(3, 3))
    before = {name: parameter.clone() for name, parameter in model.named_parameters()}
    change = remedies.apply(model, "he-init")
    assert dict(change.left) == {"0": "its weight is computed from other parameters"}
    touched = {name for name, parameter in model.named_parameters() if not torch.equal(parameter, before[name])}
    assert touched == {"2.weight", "2.bias"}


def test_layers_without_a_shape_are_refused() -> None:
    with warnings.catch_warnings(action="ignore"):  # lazy modules announce that they may change
        model = nn.Sequential(nn.LazyLinear(3))
    with pytest.raises(UsageError, match=r"0\.weight has no shape yet"):
        remedies.apply(model, "he-init")


def test_tied_layers_are_drawn_once() -> None:
    model = nn.Sequential(nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False))
    model[1].weight = model[0].weight
    change = remedies.apply(model, "he-init")
    assert [name for name, _ in change.changed] == ["0"]
    before = model[0].weight.clone()
    change.undo()
    assert not torch.equal(model[0].weight, before) and model[0].weight is model[1].weight


def test_a_net_that_starts_too_small_learns(learns: Callable[..., float]) -> None:
    def small() -> nn.Module:
        torch.manual_seed(0)
        hidden = [part for _ in range(10) for part in (nn.Linear(64, 64), nn.ReLU())]
        return nn.Sequential(nn.Flatten(), *hidden, nn.Linear(64, 10))

    model = small()
    remedies.apply(model, "he-init")
    assert learns(small(), lr=0.03) > 2.2
    assert learns(model, lr=0.03) < 1.3
