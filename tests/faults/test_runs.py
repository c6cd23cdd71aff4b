"""Other things that happen to run folders: started twice, copied while growing, damaged, ten thousand of them."""

import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from faults.killing import SMALL, content, only
from faults.nursery import Child, Nursery

from leadline.cli import main
from leadline.store.layout import RunFolder, run_folders
from leadline.store.reader import read
from leadline.store.writer import RunWriter

STEPS = 60
COPIES = 4


def words(out: Path, *more: object) -> list[str]:
    said = ("train", "resnet-8", *SMALL, "--lr", 0.05, "--steps", STEPS, "--out", out, "--checkpoint-seconds", 0.01)
    return [str(word) for word in (*said, *more)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    folder = tmp_path_factory.mktemp("undisturbed")
    assert main(words(folder)) == 0
    return only(folder)


@pytest.fixture(scope="module")
def wanted(whole: RunFolder) -> dict[str, bytes]:
    return content(whole)


def test_many_processes_that_start_the_same_run(tmp_path: Path, children: Nursery, wanted: dict[str, bytes]) -> None:
    trials, processes, refused = 3, 3, 0
    for trial in range(trials):
        started = [children.command(*words(tmp_path / str(trial))) for _ in range(processes)]
        ended = [child.wait() for child in started]
        assert sorted(each.code for each in ended)[0] == 0
        for each in ended:
            lines = each.err.splitlines()
            assert each.code == 0 or (each.code == 2 and len(lines) == 1 and "another process is writing" in lines[0])
            refused += each.code == 2
        assert content(only(tmp_path / str(trial))) == wanted
    print(f"\n{trials} runs started by {processes} processes each, {refused} of them turned away, 0 losses")


def growing(child: Child, root: Path, seconds: float) -> RunFolder | None:
    """The folder of the run, after so many seconds of its growing; None if it has ended."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        folder = only(root) if root.exists() else None
        if folder and folder.run_json.exists():
            time.sleep(seconds)
            return folder if folder.state() == "growing" else None
        time.sleep(0.002)
    raise AssertionError(f"{child.pid} did not begin")


def test_copies_of_a_growing_run_go_on_to_the_same_end(
    tmp_path: Path, children: Nursery, wanted: dict[str, bytes]
) -> None:
    chance, copies = random.Random(0), list[Path]()
    while len(copies) < COPIES:
        root = tmp_path / f"of{len(copies)}"
        child = children.command(*words(root))
        while len(copies) < COPIES and (folder := growing(child, root, chance.uniform(0.0, 0.2))):
            copy = tmp_path / f"copy{len(copies)}" / folder.path.name
            copy.parent.mkdir()
            # what vanishes under its hands is passed over, as people do
            subprocess.run(["cp", "-r", str(folder.path), str(copy)], capture_output=True)
            copies.append(copy)
        assert child.wait().code == 0
    for copy in copies:
        run = read(copy)
        assert wanted["readings.jsonl"].startswith(whole_lines(copy)) and run.state in ("dead", "done")
        ended = children.command(*words(copy.parent)).wait()
        assert ended.code == 0, ended.err
        assert content(RunFolder(copy)) == wanted
    print(f"\n{len(copies)} copies of growing runs, 0 losses")


def whole_lines(path: Path) -> bytes:
    found = RunFolder(path).readings.read_bytes()
    return found[: found.rfind(b"\n") + 1]


def test_a_copy_whose_outcome_speaks_of_more_than_it_has_is_not_done(
    tmp_path: Path, whole: RunFolder, wanted: dict[str, bytes], children: Nursery
) -> None:
    copy = RunFolder(tmp_path / whole.path.name)
    shutil.copytree(whole.path, copy.path)
    os.truncate(copy.readings, 1000)
    run = read(copy.path)
    assert run.state == "dead" and run.outcome is None and "more readings than there are" in run.notes[-1]
    assert children.command(*words(tmp_path)).wait().code == 0
    assert content(copy) == wanted and read(copy.path).state == "done"


def flip(path: Path) -> None:
    found = bytearray(path.read_bytes())
    found[len(found) // 2] ^= 4
    path.write_bytes(found)


DAMAGES = {
    "flipped": flip,
    "cut": lambda path: os.truncate(path, path.stat().st_size // 2),
    "empty": lambda path: os.truncate(path, 0),
    "gone": Path.unlink,
}
FILES = ("model.safetensors", "optimizer.safetensors", "random.safetensors", "state.json")


def unfinished(whole: RunFolder, root: Path) -> RunFolder:
    """A copy of the run that was killed before its outcome was written."""
    copy = RunFolder(root / whole.path.name)
    shutil.copytree(whole.path, copy.path)
    copy.done_json.unlink()
    return copy


@pytest.mark.parametrize("file", FILES)
def test_a_damaged_checkpoint_falls_back_to_the_one_before(
    tmp_path: Path, whole: RunFolder, wanted: dict[str, bytes], children: Nursery, file: str
) -> None:
    for name, damage in DAMAGES.items():
        copy = unfinished(whole, tmp_path / name)
        last = max(copy.checkpoint.iterdir())
        damage(last / file)
        ended = children.command(*words(tmp_path / name)).wait()
        assert ended.code == 0, ended.err
        said = [line for line in ended.err.splitlines() if "using the one before" in line]
        assert len(said) == 1 and last.name in said[0] and file in said[0], ended.err
        assert content(copy) == wanted
    print(f"\n{len(DAMAGES)} damages of {file}, 0 losses; {said[0].partition(': ')[2]}")


def test_without_any_good_checkpoint_a_run_starts_from_the_beginning(
    tmp_path: Path, whole: RunFolder, wanted: dict[str, bytes], children: Nursery
) -> None:
    copy = unfinished(whole, tmp_path)
    for path in copy.checkpoint.iterdir():
        flip(path / "model.safetensors")
    ended = children.command(*words(tmp_path)).wait()
    assert ended.code == 0 and ended.err.count("starting from the beginning") == 1, ended.err
    assert content(copy) == wanted


@pytest.mark.parametrize("file", ["run.json", "done.json", "state.json"])
def test_what_a_newer_version_wrote_is_left_alone(
    tmp_path: Path, whole: RunFolder, children: Nursery, file: str
) -> None:
    copy = RunFolder(tmp_path / whole.path.name)
    shutil.copytree(whole.path, copy.path)
    if file != "done.json":
        copy.done_json.unlink()
    for path in copy.path.rglob(file):
        path.write_text(path.read_text().replace('"format": 1', '"format": 2'))
    before = {path: path.read_bytes() for path in copy.path.rglob("*") if path.is_file()}
    ended = children.command(*words(tmp_path)).wait()
    lines = ended.err.splitlines()
    assert ended.code == 3 and len(lines) == 1, ended.err
    assert f"{file} was written by a newer leadline (format 2); expected 1 or older" in lines[0]
    assert before == {path: path.read_bytes() for path in copy.path.rglob("*") if path.is_file()}


COUNT = 10_000


def test_ten_thousand_run_folders(tmp_path: Path) -> None:
    first = tmp_path / "runs" / "run-00000"
    with RunWriter(first) as writer:
        writer.describe({"config": {"seed": 0}})
        for step in range(3):
            writer.append(step, "loss", "train/loss", 1.0 / (step + 1))
        writer.finish({"outcome": "finished"})
    files = [(path.name, path) for path in first.iterdir()]
    for number in range(1, COUNT):
        folder = first.with_name(f"run-{number:05d}")
        folder.mkdir()
        for name, path in files:
            # every tenth is dead, and every hundredth no run at all
            if (name != "done.json" or number % 10) and (name != "run.json" or number % 100):
                os.link(path, folder / name)
    start = time.process_time()
    found = list(run_folders(tmp_path / "runs"))
    listed = time.process_time()
    states = [read(folder.path).state for folder in found]
    ended = time.process_time()
    assert len(found) == COUNT - COUNT // 100 + 1 and states.count("dead") == COUNT // 10 - COUNT // 100
    print(f"\n{COUNT} folders: listed in {listed - start:.2f} s of CPU, all read in {ended - listed:.2f} s")


pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="locks of another kind")
