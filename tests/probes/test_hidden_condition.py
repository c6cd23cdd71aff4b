"""Against NumPy's SVD of what plain hooks caught at the boundaries."""

import math

import numpy as np
import pytest
import torch
from foreign import build
from probes.moment import foreign_moment, moment, read
from torch import nn

from leadline import models
from leadline.core.errors import UsageError
from leadline.probes._channels import batch_first, channel_dims
from leadline.probes.hidden_condition import HiddenCondition


def kappa(matrix: np.ndarray) -> float:
    sigma = np.linalg.svd(matrix, compute_uv=False)
    return float(sigma[0] / sigma[-1])


def test_every_boundary_of_a_residual_network() -> None:
    torch.manual_seed(0)
    model = models.create("resnet-20").double()
    x = torch.randn(12, 3, 32, 32, dtype=torch.float64)
    at = moment(model, x)
    found = read(HiddenCondition(samples=9), at)
    caught: list[torch.Tensor] = []
    hooks = [
        model.get_submodule(name).register_forward_hook(lambda *a: caught.append(a[2])) for name in model.boundary_names
    ]
    with torch.no_grad():
        model(x[:9])
    for hook in hooks:
        hook.remove()
    arrays = [tensor.numpy() for tensor in caught]
    assert found["kappa/batch"].value == pytest.approx([kappa(h.reshape(9, -1)) for h in arrays], rel=1e-7)
    channels = [h.swapaxes(0, 1).reshape(h.shape[1], -1) for h in arrays]
    assert found["kappa/channel"].value == pytest.approx([kappa(h) for h in channels], rel=1e-6)
    assert found["rank/batch"].value == [9] * len(arrays)
    assert found["rank/channel"].value == [len(h) for h in channels]
    assert found["kappa/batch"].notes[-1] == "9 samples, train mode, float64"
    assert len(found["dead"].value) == len(at.anatomy.boundaries) == 10


def test_dead_channels_and_repeated_samples_are_infinite() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.Conv2d(6, 4, 3, padding=1), nn.ReLU())
    with torch.no_grad():
        model[0].bias[1] = -1e3
        model[0].bias[4] = -1e3
    x = torch.randn(5, 3, 8, 8)
    found = read(HiddenCondition(), moment(model, x))
    assert found["dead"].value == [0, 2, 0]
    assert found["kappa/channel"].value[1] == math.inf
    assert found["kappa/channel"].notes[1].startswith("exactly singular, 2 lost")
    assert found["rank/channel"].value[1] == 4 and 1 < found["kappa_kept/channel"].value[1] < 100
    repeated = read(HiddenCondition(), moment(model, x[[0, 1, 2, 1]]))
    assert repeated["kappa/batch"].value == [math.inf] * 3 and repeated["rank/batch"].value == [3] * 3


def test_a_linear_stem_cannot_make_more_channels_than_its_patches_have_entries() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.Conv2d(16, 8, 1))
    found = read(HiddenCondition(), moment(model, torch.randn(6, 1, 12, 12)))
    assert found["rank/channel"].value[1] == 9
    assert found["kappa/channel"].notes[1].startswith("> ") and found["kappa_kept/channel"].value[1] < 100


@pytest.mark.parametrize("name", ["gpt2", "swin_t", "volumes", "convnext_atto", "unet", "lstm"])
def test_channels_are_found_wherever_they_are(name: str) -> None:
    expected = {"gpt2": [2] * 4, "swin_t": [3] * 16, "volumes": [2] * 4, "convnext_atto": [1] * 16, "unet": [1] * 9}
    assert channel_dims(foreign_moment(build(name))) == expected.get(name, [2, 1, 1])


def test_the_memory_format_and_the_order_of_axes_do_not_matter() -> None:
    torch.manual_seed(0)
    model, x = models.create("resnet-8").double(), torch.randn(6, 3, 16, 16, dtype=torch.float64)
    one = read(HiddenCondition(), moment(model, x))
    model.to(memory_format=torch.channels_last)
    other = read(HiddenCondition(), moment(model, x.to(memory_format=torch.channels_last)))
    for name in ("kappa/batch", "kappa/channel", "rank/channel"):
        assert one[name].value == pytest.approx(other[name].value, rel=1e-8)
    sequence = torch.randn(7, 6, 5)
    moved, channel = batch_first(sequence, 2, 6)
    assert torch.equal(moved, sequence.transpose(0, 1)) and channel == 2
    assert batch_first(torch.randn(8, 6, 5, 5), 0, 6)[1] == 1
    with pytest.raises(UsageError, match=r"no axis of shape \(7, 5\) counts the 6 samples"):
        batch_first(torch.randn(7, 5), 1, 6)
