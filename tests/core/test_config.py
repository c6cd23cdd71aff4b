"""Configurations: what cannot be meant is refused in one line; equal meanings are one run."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.core.config import RunConfig
from leadline.core.errors import UsageError
from leadline.core.presets import PRESETS


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"modle": "x"}, "unknown option modle; did you mean model"),
        ({"optimizer": {"lr": -1}}, "optimizer.lr: input should be greater than 0, got -1"),
        ({"training": {"epochs": 0}}, "training.epochs: input should be greater than or equal to 1, got 0"),
        ({"training": {"epochs": 1, "steps": 1}}, "training: epochs and steps exclude each other"),
        ({"schedule": {"name": "step"}}, "schedule: milestones go with the step schedule"),
        ({"optimizer": {"momentum": 0, "nesterov": True}}, "optimizer: nesterov needs momentum above 0"),
        ({"projection": {"evry": 2}}, "unknown option projection.evry; did you mean every"),
        ({"seed": -1}, "seed: input should be greater than or equal to 0, got -1"),
    ],
)
def test_refusals_name_place_and_value(change: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        RunConfig.parse({"model": "resnet-20", **change})
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)


def test_identity_is_of_the_meaning_not_of_the_writing() -> None:
    short = RunConfig.parse({"model": "resnet-20"})
    long = RunConfig.parse({"seed": 0, "optimizer": {"lr": 0.1}, "model": {"name": "resnet-20", "args": {}}})
    assert short.identity == long.identity
    assert RunConfig.parse(short.model_dump(mode="json")).identity == short.identity


def test_what_was_added_later_leaves_the_identity_of_earlier_runs() -> None:
    assert RunConfig.parse({"model": "resnet-20"}).identity == "resnet-20-s0-396aeae5e3"


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"optimizer": {"lr": 0.2}},
        {"training": {"precision": "bf16"}},
        {"training": {"local_norm": 2}},
        {"projection": {}},
        {"projection": {"every": 2}},
    ],
)
def test_what_decides_numbers_decides_identity(change: dict[str, object]) -> None:
    assert RunConfig.parse({"model": "resnet-20", **change}).digest != RunConfig.parse({"model": "resnet-20"}).digest


@given(st.text(max_size=100))
def test_identity_is_a_plain_folder_name(name: str) -> None:
    identity = RunConfig.parse({"model": name}).identity
    assert "/" not in identity and not identity.startswith(".") and len(identity.encode()) < 255


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_a_configuration(name: str) -> None:
    assert RunConfig.parse({"model": "resnet-20", **PRESETS[name]}).training.epochs
