"""How a batch is read, and what is left of a model after somebody used it."""

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from foreign import build, same_state, state
from torch import Tensor, nn

from leadline.core.errors import UsageError
from leadline.taps.inputs import Inputs, eager, understand
from leadline.taps.preserve import preserved

X, Y = torch.ones(2, 3), torch.zeros(2)


class Pair(nn.Module):
    def forward(self, left: Tensor, right: Tensor, scale: float = 1.0) -> Tensor:
        return left + scale * right


class Optional(nn.Module):
    def forward(self, ids: Tensor | None = None, mask: Tensor | None = None) -> Tensor | None:
        return ids


@pytest.mark.parametrize(
    ("model", "batch", "expected"),
    [
        (nn.Linear(3, 3), X, Inputs((X,))),
        (nn.Linear(3, 3), [X], Inputs((X,))),
        (nn.Linear(3, 3), (X, Y), Inputs((X,), targets=Y)),
        (Pair(), (X, X), Inputs((X, X))),
        (Pair(), (X, X, Y), Inputs((X, X), targets=Y)),
        (Pair(), ((X, X), Y), Inputs((X, X), targets=Y)),
        (Pair(), {"left": X, "right": X}, Inputs(kwargs={"left": X, "right": X})),
        (Pair(), ({"left": X, "right": X}, Y), Inputs(kwargs={"left": X, "right": X}, targets=Y)),
        (Optional(), (X, Y), Inputs((X,), targets=Y)),
    ],
)
def test_batches_are_understood(model: nn.Module, batch: Any, expected: Inputs) -> None:
    found = understand(model, batch)
    assert same_state((found.args, dict(found.kwargs)), (expected.args, dict(expected.kwargs)))
    assert same_state(found.targets, expected.targets)


@pytest.mark.parametrize(
    ("model", "batch", "message"),
    [
        (
            Pair(),
            (X, X, X, Y),
            r"forward takes 2 inputs \(left, right\), the batch has 4 items; pass \(inputs, targets\)",
        ),
        (nn.Linear(3, 3), (X, X, Y), r"forward takes 1 input \(input\), the batch has 3 items"),
        (nn.Linear(3, 3), (), "got an empty tuple"),
        (nn.Linear(3, 3), 3.0, "got float"),
    ],
)
def test_what_is_no_batch_is_one_clear_line(model: nn.Module, batch: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        understand(model, batch)


def test_the_eager_module_is_inside_its_wrappers() -> None:
    model = nn.Linear(3, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = torch.compile(model)
    with pytest.warns(UserWarning, match="was compiled"):
        assert eager(compiled) is model
    assert eager(model) is model


def test_everything_done_inside_is_undone() -> None:
    foreign = build("inplace_resnet")
    model = foreign.model
    foreign.loss().backward()
    model.blocks[0].eval()
    model.stem.requires_grad_(False)
    before, legacy = state(model), np.random.get_state()[1].copy()  # noqa: NPY002
    with pytest.raises(ZeroDivisionError), preserved(model):
        model.train().requires_grad_(True)
        assert all(parameter.grad is None for parameter in model.parameters())
        foreign.loss().backward()
        torch.rand(3)
        np.random.rand(3)  # noqa: NPY002
        1 / 0  # noqa: B018
    assert same_state(state(model), before)
    np.testing.assert_array_equal(np.random.get_state()[1], legacy)  # noqa: NPY002


def test_a_backward_pass_under_way_is_not_disturbed() -> None:
    foreign = build("inplace_resnet")
    foreign.model.eval()
    loss = foreign.loss()
    with preserved(foreign.model):
        foreign.model.train()
        foreign.loss().backward()
    loss.backward()


def test_a_buffer_of_two_modules_stays_one() -> None:
    model = nn.Sequential(nn.BatchNorm1d(3), nn.BatchNorm1d(3))
    model[1].running_mean = model[0].running_mean
    with preserved(model):
        assert model[1].running_mean is model[0].running_mean
    assert model[1].running_mean is model[0].running_mean
