"""The catalogue equals what the models say, is read without torch, and every listed name means what it says."""

import re
import subprocess
import sys

import pytest
import torch

from leadline.models import catalog, create, list
from leadline.models.names import families


def test_catalogue_lists_what_the_families_list() -> None:
    """If this fails after a change of a family: python -m leadline.models.catalog"""
    assert set(list()) == {name for family in families().values() for name in family.rows}


def test_catalogue_equals_the_models() -> None:
    shallow = [entry for entry in catalog.entries() if entry.depth <= 110]
    assert shallow == catalog.measure([entry.name for entry in shallow])


@pytest.mark.slow
def test_catalogue_equals_all_the_models() -> None:
    assert [*catalog.entries()] == catalog.measure()


def test_reading_it_does_not_load_torch() -> None:
    code = "import sys, leadline.models as m; assert m.list('*resnest*'); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("entry", catalog.entries(), ids=lambda entry: entry.name)
def test_depth_counted_is_the_depth_in_the_name(entry: catalog.Entry) -> None:
    number = re.search(r"\d+", entry.name)
    assert number is None or entry.depth == int(number.group())


def test_names_are_unique_and_only_of_one_family() -> None:
    names = list()
    assert len(names) == len(set(names)) > 60
    prefixes = [prefix for family in families().values() for prefix in family.prefixes]
    assert len(prefixes) == len(set(prefixes))


def test_patterns_select() -> None:
    assert all("resnest" in name for name in list("*resnest*"))
    assert {"resnest-wrn-16-8", "a-resnest-wrn-40-4", "bn-resnest-preresnet-basic-110"} <= set(list("*resnest-*"))
    assert list("no such") == []


def test_every_entry_names_its_paper() -> None:
    assert {entry.paper for entry in catalog.entries()} == {"oyedotun2021", "li2016", "zaeemzadeh2018", "chen2021"}


def test_a_network_prints_what_the_catalogue_says() -> None:
    (entry,) = catalog.entries("resnet-1001")
    with torch.device("meta"):
        text = str(create(entry.name))
    assert f"{entry.name}, depth {entry.depth}, {entry.parameters:,} parameters" in text
