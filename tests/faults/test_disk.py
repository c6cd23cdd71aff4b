"""A disk that is full or closed, at every stage of a run: one line, nothing half-written, and the run goes on later."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from faults.disks import Disk, small
from faults.killing import SMALL, content, only
from faults.nursery import Nursery

from leadline.cli import main
from leadline.core.config import RunConfig
from leadline.execute.run_one import Settings, Silent, run_one
from leadline.store.layout import RunFolder
from leadline.store.reader import read
from leadline.train import checkpoint

STEPS = 12


def words(out: Path) -> list[str]:
    return [str(word) for word in ("train", "resnet-8", *SMALL, "--lr", 0.05, "--steps", STEPS, "--out", out)]


CONFIG = RunConfig.parse(
    {
        "model": {"name": "resnet-8", "args": {"widths": [2, 2, 4]}},
        "data": {"name": "digits", "args": {"train": 256, "test": 64}, "batch_size": 32},
        "optimizer": {"lr": 0.05},
        "training": {"steps": STEPS},
    }
)
PROBED = CONFIG.model_copy(update={"probes": ("light",)})
"""Its readings of a step are more than fits into the rest of a page."""


@dataclass
class Filler(Silent):
    """Fills the disk when a run has come to a step."""

    disk: Disk
    at: int

    def advance(self, step: int, loss: float) -> None:
        if step == self.at:
            self.disk.fill()


def filled(place: str, seconds: float, at: int) -> int:
    """What a child does: trains onto a disk that becomes full on the way."""
    settings, filler = Settings(checkpoint_seconds=seconds), Filler(Disk(Path(place)), at)
    return len(run_one(PROBED, Path(place) / "runs", settings=settings, progress=filler).outcome)


def whole(folder: RunFolder) -> None:
    """Nothing half-written is there, and nothing that is not so is said."""
    assert not list(folder.path.rglob("*.part"))
    readings = folder.readings.read_bytes() if folder.readings.exists() else b""
    assert readings.endswith(b"\n") or not readings
    assert folder.state() == "dead"
    if folder.run_json.exists():
        json.loads(folder.run_json.read_bytes())
        assert not read(folder.path).notes
    assert not checkpoint.newest(folder.checkpoint, readings=folder.recorded)[1]


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("undisturbed")
    assert main(words(folder)) == 0
    return content(only(folder))


@pytest.mark.parametrize(("stage", "seconds"), [("readings.jsonl", 1e9), ("checkpoint", 0.0)])
def test_a_disk_that_becomes_full_on_the_way(tmp_path: Path, children: Nursery, stage: str, seconds: float) -> None:
    alone, steps = run_one(PROBED, tmp_path / "alone").folder, (1, 4, 7)
    for at in steps:
        with small(tmp_path / f"disk{at}", kilobytes=1024) as disk:
            ended = children.start("faults.test_disk:filled", place=str(disk.path), seconds=seconds, at=at).wait()
            assert ended.code == 3 and len(ended.err.splitlines()) == 1, ended.err
            assert "No space left on device" in ended.err and (stage in ended.err or not seconds)
            folder = only(disk.path / "runs")
            whole(folder)
            kept = folder.readings.read_bytes()
            assert alone.readings.read_bytes().startswith(kept) and kept.count(b"train/loss") >= at
            (disk.path / "ballast").unlink()
            assert content(run_one(PROBED, disk.path / "runs").folder) == content(alone)
    print(f"\ndisk full at {stage}: {len(steps)} trials, 0 losses; {ended.err.strip()}")


def test_a_disk_that_is_full_when_the_outcome_is_written(
    tmp_path: Path, wanted: dict[str, bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    with small(tmp_path / "disk", kilobytes=1024) as disk:
        assert main(words(disk.path / "runs")) == 0
        folder = only(disk.path / "runs")
        folder.done_json.unlink()
        ballast = disk.fill()
        capsys.readouterr()
        assert main(words(disk.path / "runs")) == 3
        said = capsys.readouterr().err.splitlines()[-1]
        assert said == f"leadline: cannot write {folder.done_json}: No space left on device"
        whole(folder)
        ballast.unlink()
        assert main(words(disk.path / "runs")) == 0
        assert content(folder) == wanted
    print(f"\ndisk full during done.json: 1 trial, 0 losses; {said}")


def sizes(every: int) -> list[int]:
    return list(range(8, 180, every))


def through(tmp_path: Path, children: Nursery, wanted: dict[str, bytes], kilobytes: list[int]) -> str:
    """A disk of every size: the run ends with one line or is finished; with room it goes on to the same end."""
    full = 0
    for size in kilobytes:
        with small(tmp_path / str(size), kilobytes=size) as disk:
            ended = children.command(*words(disk.path / "runs")).wait()
            if ended.code:
                full += 1
                assert ended.code == 3 and ended.err.splitlines()[-1].endswith("No space left on device"), ended.err
                assert "Traceback" not in ended.err
                whole(only(disk.path / "runs")) if (disk.path / "runs").exists() else None
                disk.resize(1024)
                again = children.command(*words(disk.path / "runs")).wait()
                assert again.code == 0, again.err
            assert content(only(disk.path / "runs")) == wanted, size
    return f"{len(kilobytes)} disks, {full} of them too small, 0 losses"


def test_disks_of_some_sizes(tmp_path: Path, children: Nursery, wanted: dict[str, bytes]) -> None:
    print("\n" + through(tmp_path, children, wanted, sizes(32)))


@pytest.mark.slow
def test_disks_of_every_size(tmp_path: Path, children: Nursery, wanted: dict[str, bytes]) -> None:
    print("\n" + through(tmp_path, children, wanted, sizes(4)))


def test_a_folder_that_cannot_be_written(tmp_path: Path, wanted: dict[str, bytes], children: Nursery) -> None:
    with small(tmp_path / "disk", kilobytes=1024) as disk:
        disk.close()
        refused = children.command(*words(disk.path)).wait()
        assert refused.code == 3 and refused.err.splitlines() == [
            f"leadline: cannot write the run folder {disk.path / CONFIG.identity}: Read-only file system"
        ]
        assert not list(disk.path.iterdir())
        disk.open()
        assert children.command(*words(disk.path)).wait().code == 0
        folder = only(disk.path)
        folder.done_json.unlink()
        disk.close()
        run = read(folder.path)
        assert run.state == "dead" and run.readings.height and not run.notes
        assert children.command(*words(disk.path)).wait().code == 3
        disk.open()
        assert children.command(*words(disk.path)).wait().code == 0 and content(folder) == wanted
        disk.close()
        finished = children.command(*words(disk.path)).wait()
        assert finished.code == 0, finished.err
    print("\nread-only folder: 3 trials, 0 losses; " + refused.err.strip())
