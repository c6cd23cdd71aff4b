"""The augmented prediction against Chen et al.'s network and by hand, in float64."""

from collections.abc import Callable

import pytest
import torch
from foreign import build
from torch import Tensor, nn
from torch.nn import functional as F

from leadline import models, remedies
from leadline.models.estimators import ResNEst


def drawn(heads: nn.ModuleDict) -> None:
    with torch.no_grad():
        for parameter in heads.parameters():
            parameter.copy_(torch.randn(parameter.shape))


@pytest.mark.parametrize(("name", "shape"), [("resnest-fc-8", (10,)), ("resnest-conv-6", (3, 8, 8))])
def test_replaced_it_is_the_a_resnest_of_the_paper(name: str, shape: tuple[int, ...]) -> None:
    model, x = models.create(name).double(), torch.randn(5, *shape).double()
    assert isinstance(model, ResNEst)
    augmented = model.augmented().double()
    remedies.apply(model, "a-resnest-heads", x, replace=True)
    (heads,) = (module for path, module in model.named_modules() if path.endswith("a_resnest_heads"))
    assert list(heads) == list(augmented.heads)
    drawn(augmented.heads)
    with torch.no_grad():
        for path, parameter in augmented.heads.named_parameters():  # H0.weight, or H0.linear.weight behind a pooling
            heads.get_parameter(path.replace(".linear", "")).copy_(parameter)
    torch.testing.assert_close(model(x), augmented(x), rtol=0, atol=1e-12)


def test_added_heads_start_silent_and_then_speak() -> None:
    foreign = build("inplace_resnet")
    model, x = foreign.model.double().eval(), torch.randn(3, 3, 8, 8).double()
    y = model(x)
    remedies.apply(model, "a-resnest-heads", x)
    assert torch.equal(model(x), y)
    heads = model.fc.a_resnest_heads
    drawn(heads)
    v = [x]
    h = F.relu(model.stem(x))
    for block in model.blocks:
        v.append(F.relu(block.bn1(block.conv1(h))))
        h = block(h)
    terms = [heads[f"H{i}"](feature.mean((2, 3))) for i, feature in enumerate(v)]
    torch.testing.assert_close(model(x), y + sum(terms), rtol=0, atol=1e-12)


def test_scores_per_token_get_heads_per_token() -> None:
    foreign = build("gpt2")
    model = foreign.model.double().eval()
    y = model(**foreign.inputs).logits
    features: list[Tensor] = []
    with model.transformer.h[1].mlp.c_proj.register_forward_hook(lambda _, args, __: features.append(args[0])):
        model(**foreign.inputs)
    change = remedies.apply(model, "a-resnest-heads", foreign.inputs)
    assert ("(model):out.logits", "with the heads' sum added") in change.changed
    heads = model.lm_head.a_resnest_heads
    nn.init.normal_(heads["H4"].weight)
    torch.testing.assert_close(
        model(**foreign.inputs).logits, y + F.linear(features[0], heads["H4"].weight), rtol=0, atol=1e-12
    )


def test_every_block_gets_a_gradient_when_the_way_out_is_blocked() -> None:
    foreign = build("preactivation")
    with torch.no_grad():
        foreign.model[9].weight.zero_()
    remedies.apply(foreign.model, "a-resnest-heads", foreign.inputs)
    foreign.loss().backward()
    assert not foreign.model[1].conv1.weight.grad.any()
    drawn(foreign.model[9].a_resnest_heads)
    foreign.loss().backward()
    assert all(foreign.model[i].conv1.weight.grad.any() for i in range(1, 5))


def test_a_net_too_narrow_for_its_features_fits_better(learns: Callable[..., float], data: Tensor) -> None:
    def narrow() -> nn.Module:
        torch.manual_seed(0)
        return nn.Sequential(nn.Flatten(), models.create("resnest-fc-10", in_channels=64, features=8, width=2))

    model = narrow()
    remedies.apply(model, "a-resnest-heads", data[0][:4])
    assert learns(model, lr=0.03) < learns(narrow(), lr=0.03) - 0.1
