"""What a name cannot mean is said in one line that lists what it could."""

import pytest
import torch
from torch import Tensor

from leadline.core.errors import UsageError
from leadline.models import create
from leadline.models.families.resnet import FAMILY as resnet


def refusal(name: str, **options: object) -> str:
    with pytest.raises(UsageError) as caught:
        create(name, **options)
    message = str(caught.value)
    assert "\n" not in message and caught.value.exit_code == 2
    return message


@pytest.mark.parametrize(
    ("name", "neighbours"),
    [
        ("resnet-111", ["resnet-110", "resnet-116", "resnet-119"]),
        ("plainnet-21", ["plainnet-20", "plainnet-26"]),
        ("resnext-111", ["resnext-110", "resnext-119"]),
        ("preresnet-165", ["preresnet-164", "preresnet-173"]),
        ("procresnet-164", ["procresnet-157", "procresnet-166"]),
        ("wrn-17-8", ["wrn-16-8", "wrn-22-8"]),
        ("a-resnest-wrn-17-8", ["wrn-16-8", "wrn-22-8"]),
        ("shortcut-resnet-111", ["shortcut-resnet-110", "shortcut-resnet-116"]),
        ("shortcut-net-15", ["shortcut-net-14", "shortcut-net-16"]),
        ("resnest-fc-9", ["resnest-fc-8", "resnest-fc-10"]),
        ("a-resnest-conv-9", ["a-resnest-conv-8", "a-resnest-conv-10"]),
        ("densenest-fc-1", ["densenest-fc-2"]),
        ("resnet-2", ["resnet-8", "resnet-11"]),
    ],
)
def test_bad_depth_lists_its_valid_neighbours(name: str, neighbours: list[str]) -> None:
    message = refusal(name)
    assert all(neighbour in message for neighbour in neighbours), message


def test_the_neighbours_are_valid() -> None:
    nearest = refusal("resnet-111").rsplit(": ", 1)[1].split(", ")
    with torch.device("meta"):
        assert [create(name).depth for name in nearest] == [int(name.split("-")[1]) for name in nearest]


def test_block_narrows_the_depths() -> None:
    assert "9n+2 (bottleneck); nearest: resnet-47, resnet-56" in refusal("resnet-50", block="bottleneck")
    assert refusal("resnet-110", block="dense") == "unknown block 'dense'; expected one of basic, bottleneck"
    assert create("resnet-50").depth == 50  # basic, 6n + 2
    assert len(create("resnet-20").blocks) == 9 and len(create("resnet-20", block="bottleneck").blocks) == 6


def test_imagenet_has_its_own_depths() -> None:
    assert "resnet-18, resnet-34, resnet-50, resnet-101, resnet-152" in refusal("resnet-110", stem="imagenet")
    assert "has block='bottleneck'; got block='basic'" in refusal("resnet-50-imagenet", block="basic")


@pytest.mark.parametrize("widths", [(16, 32), (16, 0, 64), (16, 32, 64.0)])
def test_bad_widths(widths: tuple[float, ...]) -> None:
    assert refusal("resnet-20", widths=widths) == f"widths={widths}: expected 3 positive whole numbers"


def test_other_bad_options() -> None:
    assert "expected 4 positive whole numbers" in refusal("resnet-18-imagenet", widths=(16, 32, 64))
    assert "positive whole number" in refusal("wrn-16-0")
    assert "positive whole number" in refusal("resnet-20", num_classes=0)
    assert "positive whole numbers" in refusal("shortcut-net", shortcut=0)
    assert refusal("preresnet-20", stem="imagenet") == "stem='imagenet': expected one of cifar, mnist"
    assert "did you mean 'he-fan-in'" in refusal("resnet-20", init="he-fanin")
    assert "unknown option of resnet-20 'width'; did you mean 'widths'?" in refusal("resnet-20", width=3)
    assert "got units=3 as well" in refusal("shortcut-net-16", units=3)


def test_what_a_name_fixes_cannot_be_given_otherwise() -> None:
    assert (
        refusal("resnet-20-linear", activation="relu")
        == "resnet-20-linear means activation='identity'; got activation='relu'"
    )
    assert "unknown option of plainnet-20 'plain'" in refusal("plainnet-20", plain=False)


@pytest.mark.parametrize("name", ["resnest50", "resnest-50", "ResNeSt-101", "ResNest50d"])
def test_resnest_with_a_t_is_not_ours(name: str) -> None:
    message = refusal(name)
    assert "ResNeSt (split attention" in message and "resnest-wrn-16-8" in message


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("resnt-110", "'resnet-110'"),
        ("ResNet-110", "'resnet-110'"),
        ("procresnet166", "'procresnet-166'"),
        ("wide-resnet-16-8", "leadline list models"),
        ("resnet", "followed by a depth, as in resnet-"),
        ("wrn-16", "followed by a depth and a widening factor, as in wrn-16-8"),
        ("resnet-020", "followed by a depth"),
        ("resnet-20-30", "followed by a depth"),
        ("resnet-20-erased", "unknown variant 'erased' in 'resnet-20-erased'; resnet has: linear, imagenet"),
        ("resnet-20-linear-linear", "unknown variant"),
        ("wrn-16-8-wide", "wrn has: none"),
    ],
)
def test_unreadable_names(name: str, hint: str) -> None:
    assert hint in refusal(name)


def test_a_family_can_be_called() -> None:
    model = resnet(20, num_classes=7)
    assert (model.depth, str(model.spec)) == (20, "resnet-20(num_classes=7)")
    assert model(torch.randn(2, 3, 32, 32)).shape == (2, 7)


@pytest.mark.parametrize(
    ("name", "batch", "advice"),
    [
        ("resnet-20", torch.zeros(2, 1, 28, 28), "stem='mnist'"),
        ("resnet-20", torch.zeros(2, 3, 224, 224), "stem='imagenet'"),
        ("resnet-18-imagenet", torch.zeros(2, 3, 32, 32), "stem='cifar'"),
        ("preresnet-20", torch.zeros(2, 3, 2, 2), "4 to 96 pixels"),
        ("resnet-20", torch.zeros(2, 3), "got a batch of shape (2, 3)"),
        ("shortcut-net", torch.zeros(2, 11), "vectors of width 10"),
    ],
)
def test_a_stem_refuses_other_data(name: str, batch: Tensor, advice: str) -> None:
    with pytest.raises(UsageError) as caught:
        create(name)(batch)
    assert advice in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["resnet-20", "plainnet-20", "preresnet-20", "procresnet-22", "resnest-wrn-10-1"])
def test_stems_for_grey_images(name: str) -> None:
    digits = torch.randn(2, 1, 8, 8)
    assert create(name, in_channels=1)(digits).shape == (2, 10)
    assert create(name, stem="mnist").input_shape == (1, 28, 28)
    assert create(name, stem="mnist")(torch.randn(2, 1, 28, 28)).shape == (2, 10)
