"""Transitions of the library's own families and of other people's models."""

import pytest
from foreign import declare_vision_operators
from torch import nn

from leadline import models
from leadline.projections import transitions


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("procresnet-22", ["stem.conv", "blocks.transition2", "blocks.transition3"]),
        ("procresnet-166", ["stem.conv", "blocks.transition2", "blocks.transition3"]),
        ("resnet-20", ["stem.conv", "blocks.stage2_block1.skip.conv", "blocks.stage3_block1.skip.conv"]),
    ],
)
def test_own_models(name: str, expected: list[str]) -> None:
    assert list(transitions(models.create(name))) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("resnet18", ["conv1", *(f"layer{k}.0.downsample.0" for k in (2, 3, 4))]),
        ("resnet50", ["conv1", *(f"layer{k}.0.downsample.0" for k in (1, 2, 3, 4))]),
        ("vgg11", ["features.0", "features.3", "features.6", "features.11"]),
        ("convnext_tiny", ["features.0.0", "features.2.1", "features.4.1", "features.6.1"]),
    ],
)
def test_other_peoples_models(name: str, expected: list[str]) -> None:
    declare_vision_operators()
    import torchvision

    assert list(transitions(torchvision.models.get_model(name, weights=None))) == expected


class Block(nn.Module):
    """Skip first, then a bottleneck with squeeze-and-excitation, as some libraries register them."""

    def __init__(self) -> None:
        super().__init__()
        self.shortcut = nn.Conv2d(8, 16, 1, stride=2)
        self.layer = nn.Sequential(nn.Conv2d(8, 4, 1), nn.Conv2d(4, 4, 3, stride=2), nn.Conv2d(4, 16, 1))
        self.squeeze, self.excite = nn.Conv2d(16, 4, 1), nn.Conv2d(4, 16, 1)


def test_a_skip_that_comes_first_and_a_squeeze() -> None:
    found = transitions(nn.Sequential(nn.Conv2d(3, 8, 3), Block()))
    assert list(found) == ["0", "1.shortcut"]


def test_nothing_changes_the_shape() -> None:
    assert transitions(nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.ReLU(), nn.Linear(4, 2))) == {}
