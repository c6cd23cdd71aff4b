"""Against the cosine of every pair, one by one."""

import math
from itertools import permutations

import numpy as np
import pytest
import torch
from probes.moment import moment, read
from torch import nn

from leadline.probes._readings import Noted
from leadline.probes.collinearity import Collinearity, mean_cosine


def slowly(hidden: np.ndarray) -> float:
    pairs = [(a, b) for a, b in permutations(hidden, 2)]
    return float(np.mean([abs(a @ b) / (np.linalg.norm(a) * np.linalg.norm(b)) for a, b in pairs]))


def test_every_pair_along_a_deep_plain_linear_network() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Linear(8, 8, bias=False, dtype=torch.float64) for _ in range(300)))
    x = torch.randn(7, 8, dtype=torch.float64)
    found = read(Collinearity(samples=5), moment(model, x))["cosine"]
    hidden, expected = x[:5], [slowly(x[:5].numpy())]
    for layer in model:
        hidden = layer(hidden).detach()
        expected.append(slowly(hidden.numpy()))
    assert found.value == pytest.approx(expected, rel=1e-10)
    assert found.value[-1] > 0.95 > 0.5 > found.value[0], "one basis vector survives (Oyedotun et al., Remark 1)"
    assert found.notes[-1] == "5 samples, train mode"


def test_what_has_no_direction_is_said() -> None:
    assert mean_cosine(torch.ones(1, 3)) == "one sample: no pair"
    assert mean_cosine(torch.zeros(3, 4)) == "3 of 3 samples are zero: no pair to compare"
    assert mean_cosine(torch.full((2, 2), math.nan)) == "not finite"
    assert mean_cosine(torch.ones(0, 4)) == "the representation is empty: (0, 4)"
    rows = torch.tensor([[1.0, 0.0], [0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
    assert mean_cosine(rows) == Noted(pytest.approx(math.sqrt(0.5)), "without 1 samples that are zero")
    assert mean_cosine(torch.randn(3, 100, generator=torch.Generator().manual_seed(0)) * 1e-18) != "not finite"
