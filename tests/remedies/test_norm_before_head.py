"""What the head reads, normalised by hand in float64, and nets that have such a norm already."""

from collections.abc import Callable
from math import isnan

import pytest
import torch
from foreign import build
from torch import Tensor, nn
from torch.nn import functional as F

from leadline import models, remedies
from leadline.core.errors import UsageError


def test_the_head_reads_features_of_mean_zero_and_variance_one() -> None:
    foreign = build("inplace_resnet")
    model, x = foreign.model.double(), torch.randn(16, 3, 8, 8).double()
    features: list[Tensor] = []
    with model.fc.register_forward_hook(lambda _, args, __: features.append(args[0])):
        model(x)
    v = features[0]
    expected = F.linear((v - v.mean(0)) / (v.var(0, unbiased=False) + 1e-5).sqrt(), model.fc.weight, model.fc.bias)
    change = remedies.apply(model, "norm-before-head", x)
    assert change.changed == (("fc", "reads its input through a new BatchNorm1d"),)
    torch.testing.assert_close(model(x), expected, rtol=0, atol=1e-12)
    assert {"fc.weight", "fc.bias", "fc.norm.weight", "fc.norm.running_mean"} <= set(model.state_dict())


class Tokens(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(9, 6), nn.Linear(6, 9)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(torch.tanh(self.embed(ids)))


def test_tokens_and_maps() -> None:
    model, ids = Tokens().double(), torch.randint(0, 9, (2, 5))
    v = torch.tanh(model.embed(ids))
    normal = (v - v.mean(-1, keepdim=True)) / (v.var(-1, unbiased=False, keepdim=True) + 1e-5).sqrt()
    expected = F.linear(normal, model.head.weight, model.head.bias)
    with pytest.raises(UsageError, match="the head reads tokens of shape"):
        remedies.apply(model, "norm-before-head", ids, norm="batch")
    remedies.apply(model, "norm-before-head", ids)
    torch.testing.assert_close(model(ids), expected, rtol=0, atol=1e-12)
    for norm, kind in (("batch", nn.BatchNorm2d), ("layer", nn.GroupNorm)):
        maps = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 2, 1))
        remedies.apply(maps, "norm-before-head", torch.randn(2, 3, 8, 8), norm=norm)
        assert isinstance(maps[2].norm, kind)


@pytest.mark.parametrize("name", ["preactivation", "gpt2", "llama", "hf_vit", "convnext_atto", "unet"])
def test_nets_that_end_in_a_norm_are_left_alone(name: str) -> None:
    foreign = build(name)
    change = remedies.apply(foreign.model, "norm-before-head", foreign.inputs)
    assert change.no_op and "comes from a norm already" in change.reason
    foreign = build("twice")
    assert remedies.apply(foreign.model, "norm-before-head", foreign.inputs).changed
    assert remedies.apply(foreign.model, "norm-before-head", foreign.inputs).no_op


def test_a_head_that_is_no_linear_layer() -> None:
    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(3, 4)

        def forward(self, x: Tensor) -> Tensor:
            return self.lstm(x)[0]

    change = remedies.apply(Recurrent(), "norm-before-head", torch.randn(5, 2, 3))
    assert change.no_op and "neither linear nor a convolution but a LSTM" in change.reason


def test_an_exploding_residual_net_learns(learns: Callable[..., float], data: Tensor) -> None:
    def residual() -> nn.Module:
        torch.manual_seed(0)
        return models.create("resnet-38", stem="mnist", norm="none", widths=(8, 16, 32))

    model = residual()
    remedies.apply(model, "norm-before-head", data[0][:4])
    assert isnan(learns(residual(), lr=0.01))
    assert learns(model, lr=0.01) < 2.0
