"""A run as the page takes it: places along one axis, the diagnosis with the blocks it names, cards that explain."""

from pathlib import Path
from typing import Any

import pytest
import written
from hypothesis import given
from hypothesis import strategies as st

from leadline.core import plugins
from leadline.diagnosis.judge import rules
from leadline.page import cards, describe
from leadline.page.depth import axes, layers
from leadline.page.judged import linked, mentions
from leadline.store.layout import RunFolder
from leadline.store.reader import Follower


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return describe(written.judged(written.run(tmp_path_factory.mktemp("runs") / "a")))


@given(st.lists(st.sampled_from(["stem", "b0.x", "b0.y", "b1.x", "b2.x", "between", "head"]), max_size=12))
def test_layers_lie_within_their_blocks(names: list[str]) -> None:
    found = layers(names, [["b0"], ["b1"], ["b2"]])
    for name, at in zip(names, found, strict=True):
        if name[0] == "b" and name[1].isdigit():
            block = int(name[1]) + 1
            assert block - 0.5 < at < block + 0.5
        else:
            assert -0.5 < at < 4.5


def test_layers_of_a_network_lie_in_the_order_they_are_called() -> None:
    found = axes(written.record())
    at = found["layer"]["at"]
    assert at == sorted(at) and len(at) == len(found["layer"]["names"])
    assert found["boundary"]["at"] == [k + 0.5 for k in range(written.places("boundary"))]
    assert found["block"]["at"] == [float(k) for k in range(1, written.places("block") + 1)]


def test_a_finding_knows_where_the_blocks_lie_that_it_names(run: dict[str, Any]) -> None:
    (finding,) = run["diagnosis"]["findings"]
    assert finding["places"] == {written.record()["places"]["block"][1]: 2.0}
    assert linked(None, run["axes"]) is None


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("most in layer1.0", ["layer1.0"]),
        ("layer1.0, layer1.", ["layer1.0", "layer1"]),
        ("most in 3: 12 of it", ["3"]),
        ("3 of them", []),
        ("layer10 and xlayer1", []),
        ("(layer1)", ["layer1"]),
    ],
)
def test_names_are_found_as_words_of_their_own(text: str, names: list[str]) -> None:
    assert mentions(text, {"layer1.0": 1, "layer1": 2, "3": 3}) == names


def test_every_probe_and_rule_is_explained_in_parts() -> None:
    for name in plugins.names(cards.PROBES):
        card = cards.of_probe(name)
        assert card and card["title"] and card["text"] and card["reference"] and card["normal"], name
    for name in rules():
        card = cards.of_rule(name)
        assert card["title"] and (card["text"] or card["limits"]), name
    assert cards.of_probe("none_of_ours") is None


def test_shapes_are_of_one_sample_and_lengths_are_told(run: dict[str, Any]) -> None:
    told, known = run["anatomy"]["blocks"], written.record()["anatomy"]["blocks"]
    for block, source in zip(told, known, strict=True):
        assert block["in"] == list(source["in_shape"][1:]) and block["length"] == max(source["lengths"])
        assert block["transition"] == (source["kind"] == "transition" or block["in"] != block["out"])


def test_who_goes_on_following_misses_nothing_and_gets_nothing_twice(tmp_path: Path) -> None:
    folder = written.run(tmp_path / "a", finished=False)
    readings = folder / "readings.jsonl"
    whole = readings.read_bytes()
    cut = len(whole) // 2
    readings.write_bytes(whole[:cut])
    follower = Follower(RunFolder(folder))
    first = describe(folder, follower=follower)
    with readings.open("ab") as file:
        file.write(whole[cut:])
    late = follower.lines()
    everything = describe(folder)
    (losses,) = [block["steps"] for block in first["readings"] if block["probe"] == "loss"]
    (all_losses,) = [block["steps"] for block in everything["readings"] if block["probe"] == "loss"]
    assert losses + [one["step"] for one in late if one["probe"] == "loss"] == all_losses
