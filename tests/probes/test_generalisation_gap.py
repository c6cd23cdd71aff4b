"""Errors on two splits, counted one sample at a time."""

import math
from dataclasses import replace

import pytest
import torch
from foreign import build, same_state, state
from probes.moment import moment, read
from torch import Tensor, nn

from leadline.probes import Splits
from leadline.probes.generalisation_gap import GeneralisationGap


def split(seed: int, batches: int) -> list[tuple[Tensor, Tensor]]:
    generator = torch.Generator().manual_seed(seed)
    return [
        (torch.randn(7, 3, 16, 16, generator=generator), torch.randint(10, (7,), generator=generator))
        for _ in range(batches)
    ]


def wrong(model: nn.Module, batches: list[tuple[Tensor, Tensor]]) -> float:
    """Percent of samples, each passed alone in evaluation mode."""
    model.eval()
    with torch.no_grad():
        misses = [int(model(x[None]).argmax()) != int(y) for xs, ys in batches for x, y in zip(xs, ys, strict=True)]
    model.train()
    return 100 * sum(misses) / len(misses)


def test_errors_of_both_splits_and_a_model_left_alone() -> None:
    model = build("inplace_resnet").model
    train, test = split(1, 4), split(2, 3)
    at = replace(moment(model, train[0][0]), splits=Splits(train, test))
    before = state(model)
    found = read(GeneralisationGap(batches=3), at)
    assert same_state(before, state(model))
    assert found["error/train"].value == pytest.approx(wrong(model, train[:3]))
    assert found["error/test"].value == pytest.approx(wrong(model, test))
    assert found["gap"].value == pytest.approx(wrong(model, test) - wrong(model, train[:3]))
    misses = [int((model(x).argmax(1) != y).sum()) for x, y in train[:3]]
    training = 100 * sum(misses) / sum(len(y) for _, y in train[:3])
    assert found["error/training"].value == pytest.approx(training)
    assert found["gap/training"].value == pytest.approx(wrong(model, test) - training)


def test_what_it_cannot_say() -> None:
    model = build("inplace_resnet").model
    at = moment(model, torch.randn(2, 3, 16, 16))
    reasons = {
        "splits=": None,
        "class numbers": Splits([(torch.randn(2, 3, 16, 16), torch.randn(2, 10))], split(1, 1)),
        "no samples": Splits(split(1, 1), []),
    }
    for reason, splits in reasons.items():
        gap = read(GeneralisationGap(), replace(at, splits=splits))["gap"]
        assert math.isnan(gap.value) and reason in gap.notes[-1]
