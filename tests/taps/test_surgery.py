"""Surgery on modules of every calling convention, taken back bit for bit."""

import copy
from typing import Any

import pytest
import torch
from foreign import build, declare_vision_operators, same_state, state
from torch import Tensor, nn
from torch.nn.utils import parametrize

from leadline.core.errors import UsageError
from leadline.taps.places import Place
from leadline.taps.surgery import Surgery, put

declare_vision_operators()  # transformers looks for torchvision


class Conventions(nn.Module):
    """Takes a keyword and gives tuples in a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 3)

    def forward(self, x: Tensor, *, y: Tensor) -> dict[str, Any]:
        return {"both": (self.inner(x), y)}


def test_tensors_are_met_and_replaced_wherever_they_are_passed() -> None:
    model, x, y = Conventions().double(), torch.randn(2, 3).double(), torch.randn(2, 3).double()
    inner, passed = model(x, y=y)["both"]
    seen: list[Tensor] = []
    surgery = Surgery()
    surgery.at(model, Place("inner", "in", (0,)), seen.append)
    surgery.at(model, Place("", "in", ("y",)), lambda t: 2 * t)
    surgery.at(model, Place("", "out", ("both", 0)), lambda t: t + 1)
    new_inner, new_passed = model(x, y=y)["both"]
    assert seen == [x]
    assert torch.equal(new_inner, inner + 1) and torch.equal(new_passed, 2 * passed)
    surgery.undo()
    assert torch.equal(model(x, y=y)["both"][0], inner) and len(seen) == 1


def test_a_dataclass_that_is_a_mapping_keeps_both_faces() -> None:
    foreign = build("gpt2")
    output = foreign.model(**foreign.inputs)
    new = put(output, ("logits",), output.logits + 1)
    assert type(new) is type(output) and new.logits is new["logits"]
    assert torch.equal(new.logits, output.logits + 1) and not torch.equal(new.logits, output.logits)


def test_hooks_are_copied_with_the_model() -> None:
    class Doubles:
        def __init__(self, factor: nn.Parameter) -> None:
            self.factor = factor

        def __call__(self, t: Tensor) -> Tensor:
            return t * self.factor

    model = nn.Sequential(nn.Linear(3, 3))
    surgery = Surgery()
    surgery.attach(model[0], "norm", nn.LayerNorm(3))
    surgery.at(model, Place("0", "out"), Doubles(model[0].norm.weight))
    twin = copy.deepcopy(model)
    with torch.no_grad():
        twin[0].norm.weight.fill_(0)
    x = torch.randn(2, 3)
    assert not twin(x).any() and model(x).any()


def test_everything_is_put_back_in_its_order() -> None:
    foreign = build("inplace_resnet")
    model = foreign.model
    before, names, kinds = state(model), list(model.state_dict()), [type(m) for m in model.modules()]
    surgery = Surgery()
    for name in ("fc", "stem"):
        layer = model.get_submodule(name)
        surgery.write(layer.weight, layer.weight * 2)
        surgery.write(layer.weight, layer.weight * float("nan"))
        surgery.reshape(layer)
        parametrize.register_parametrization(layer, "weight", nn.Tanh(), unsafe=True)
        surgery.attach(layer, "extra", nn.Linear(2, 2))
    assert list(model.state_dict()) != names
    surgery.undo()
    after = state(model)
    assert list(model.state_dict()) == names and [type(m) for m in model.modules()] == kinds
    for ignored in ("versions", "random"):
        del before[ignored], after[ignored]
    assert same_state(after, before)


def test_undo_calls_back_in_reverse() -> None:
    order: list[int] = []
    surgery = Surgery()
    for index in range(3):
        surgery.later(lambda index=index: order.append(index))
    surgery.undo()
    surgery.undo()
    assert order == [2, 1, 0]


def test_mistakes_are_one_line() -> None:
    model = nn.Sequential(nn.Linear(2, 2))
    surgery = Surgery()
    with pytest.raises(UsageError, match="unknown module '1'; expected one of"):
        surgery.at(model, Place("1", "in", (0,)), lambda t: t)
    with pytest.raises(UsageError, match="Linear already has something called 'weight'"):
        surgery.attach(model[0], "weight", nn.Linear(2, 2))
    surgery.at(model, Place("0", "out", (0,)), lambda t: t)
    with pytest.raises(UsageError, match=r"no tensor at 0:out\.0 in this call"):
        model(torch.ones(1, 2))
