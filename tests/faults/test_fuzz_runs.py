"""Bytes that nobody wrote, in run folders and checkpoints: one line of ours or a value, never another error."""

import contextlib
import hashlib
import io
import json
import shutil
from itertools import takewhile
from pathlib import Path

import pytest
import torch
from faults.fuzzing import EXAMPLES, PARTS, Edit, edits, fuzz, hurt, json_values, made, net, ours, written
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save

from leadline.cli import main
from leadline.live.catalogue import Catalogue
from leadline.store.layout import RunFolder
from leadline.store.reader import Follower, read
from leadline.train import checkpoint


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return made(tmp_path_factory.mktemp("runs") / "run")


@pytest.mark.parametrize("name", ["readings.jsonl", "run.json", "done.json", "writer.lock"])
@fuzz
@given(changes=edits)
def test_run_folders(run: RunFolder, name: str, changes: list[Edit]) -> None:
    path = run.path / name
    whole = path.read_bytes()
    path.write_bytes(hurt(whole, changes))
    try:
        ours(read, run.path)
        pieces = Follower(run)
        small = [reading for _ in range(40) for reading in ours(pieces.lines, most=997) or []]
        assert small == Follower(run).lines()
        catalogue = Catalogue(run.path.parent)
        catalogue.settle()
        json.dumps(catalogue.state.since(0), allow_nan=False)
    finally:
        path.write_bytes(whole)


@settings(fuzz, max_examples=max(10, EXAMPLES // 6))
@given(name=st.sampled_from(["readings.jsonl", "run.json", "done.json"]), changes=edits)
def test_the_verb_that_judges_a_run_folder(run: RunFolder, name: str, changes: list[Edit]) -> None:
    path = run.path / name
    whole = path.read_bytes()
    path.write_bytes(hurt(whole, changes))
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
            assert main(["check", str(run.path)]) in (0, 1, 2, 3)
        assert len(said.getvalue().splitlines()) <= 1
    finally:
        path.write_bytes(whole)


@fuzz
@given(changes=edits)
def test_lines_before_a_damage_are_all_read(tmp_path: Path, changes: list[Edit]) -> None:
    folder = made(tmp_path / "run")
    whole = folder.readings.read_bytes()
    damaged = hurt(whole, changes)
    folder.readings.write_bytes(damaged)
    lines, others = (content.splitlines(keepends=True) for content in (whole, damaged))
    good = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(lines, others, strict=False))))
    before = [json.loads(line) for line in lines[:good]]
    assert Follower(folder).lines()[:good] == before
    shutil.rmtree(folder.path)


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("checkpoint"))


@pytest.mark.parametrize("name", PARTS)
@fuzz
@given(changes=edits)
def test_altered_checkpoints_are_passed_over(checkpoints: Path, name: str, changes: list[Edit]) -> None:
    path = checkpoints / "step-000000002" / name
    whole = path.read_bytes()
    path.write_bytes(hurt(whole, changes))
    try:
        found, notes = ours(checkpoint.newest, checkpoints) or (None, ["newer"])
        altered = path.read_bytes() != whole
        if found is not None and found.name == "step-000000002":
            assert not altered or (name == "state.json" and checkpoint._state(found))
        else:
            assert altered and len(notes) == 1
    finally:
        path.write_bytes(whole)


def signed(folder: Path) -> None:
    """What somebody does who alters a checkpoint on purpose: all digests are right."""
    state = json.loads((folder / "state.json").read_bytes())
    with contextlib.suppress(TypeError, AttributeError, KeyError, OSError):
        for name in state["sha256"]:
            state["sha256"][name] = hashlib.sha256((folder / f"{name}.safetensors").read_bytes()).hexdigest()
        state["digest"] = checkpoint._digest(state)
    (folder / "state.json").write_text(json.dumps(state))


tensors = st.dictionaries(
    st.sampled_from(["weight", "bias", "0.exp_avg", "0.step", "7.step", "0.x", "x", "cpu", "python", "numpy", "steps"]),
    st.builds(
        lambda shape, kind: torch.zeros(shape, dtype=kind),
        st.lists(st.integers(0, 3), max_size=3),
        st.sampled_from([torch.float32, torch.float64, torch.int64, torch.uint8, torch.bool, torch.bfloat16]),
    ),
    max_size=5,
)


@pytest.mark.parametrize("name", PARTS)
@fuzz
@given(data=st.data())
def test_forged_checkpoints_are_refused_or_loaded(checkpoints: Path, name: str, data: st.DataObject) -> None:
    forged = checkpoints.with_name("forged") / "step-000000002"
    shutil.copytree(checkpoints / "step-000000002", forged)
    try:
        if name == "state.json":
            state = json.loads((forged / name).read_bytes())
            keys = st.sampled_from([*state, "optimizer.0.lr", "optimizer.0.betas"])
            key, value = data.draw(keys), data.draw(json_values)
            first, _, rest = key.partition(".0.")
            if rest:
                state[first][0][rest] = value
            else:
                state[first] = value
            (forged / name).write_text(json.dumps(state))
        else:
            whole = (forged / name).read_bytes()
            content = data.draw(st.builds(hurt, st.just(whole), edits) | st.builds(save, tensors))
            (forged / name).write_bytes(content)
        signed(forged)
        found = ours(checkpoint.newest, forged.parent)
        if found and found[0]:
            ours(checkpoint.read, forged, *net())
            ours(checkpoint.load_weights, forged, net()[0])
    finally:
        shutil.rmtree(forged.parent)
