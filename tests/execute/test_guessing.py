"""What guessing costs, against the entropy of the labels and the variance of the targets."""

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from leadline.execute.guessing import guessing


def test_cross_entropy_costs_the_entropy_of_the_labels_over_all_batches() -> None:
    labels = torch.tensor([0] * 12 + [1] * 3 + [2])
    shares = torch.tensor([12, 3, 1]) / 16
    entropy = -float((shares * shares.log()).sum())
    assert guessing(F.cross_entropy, torch.ones(16, 3), [labels]) == pytest.approx(entropy, rel=1e-4)
    assert guessing(F.cross_entropy, torch.ones(8, 3), [labels[:8], labels[8:]]) == pytest.approx(entropy, rel=1e-4)


def test_even_labels_cost_the_logarithm_of_their_number() -> None:
    found = guessing(F.cross_entropy, torch.ones(20, 10), [torch.arange(20) % 10])
    assert found == pytest.approx(math.log(10), rel=1e-5)


def test_the_squared_error_costs_the_variance() -> None:
    targets = torch.randn(40, 3) + torch.tensor([5.0, 0.0, -2.0])
    assert guessing(F.mse_loss, torch.ones(40, 3), [targets]) == pytest.approx(
        float(targets.var(0, correction=0).mean()), rel=1e-3
    )


def test_too_few_targets_and_outputs_that_are_no_vectors_cost_what_zeros_do() -> None:
    assert guessing(F.cross_entropy, torch.ones(4, 3), [torch.ones(4).long()]) == pytest.approx(math.log(3))
    maps, labels = torch.ones(2, 3, 4, 4), torch.randint(3, (2, 4, 4))
    assert guessing(F.cross_entropy, maps, [labels]) == pytest.approx(math.log(3))


def test_a_loss_that_takes_more_than_tensors_is_not_known() -> None:
    def loss(output: Tensor, targets: Tensor) -> Tensor:
        raise TypeError("no")

    assert math.isnan(guessing(loss, torch.ones(2, 3), [torch.ones(2)]))
