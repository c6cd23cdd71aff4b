"""Processes killed with SIGKILL at random moments of a training: nothing recorded is lost, and no bit differs."""

import json
import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from faults.killing import MEMORY, content, killed
from faults.nursery import Nursery

from leadline.core.config import RunConfig
from leadline.execute.pool import execute
from leadline.execute.run_one import Settings, run_one
from leadline.store.layout import RunFolder
from leadline.store.reader import read

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads the CPU time of processes from /proc")


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder in memory where there is one: what is written there outlives a process all the same."""
    with TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        yield Path(folder)


def told(children: Nursery, kills: int, each: int) -> None:
    with scratch() as root:
        tally = killed(children, root, kills=kills, each=each)
    print(f"\n{json.dumps(asdict(tally), indent=1)}\n{tally.kills} kills, {tally.losses} losses")
    assert tally.kills >= kills and tally.losses == 0


def test_killed_trainings_end_as_if_nothing_had_happened(children: Nursery) -> None:
    told(children, 6, each=2)


@pytest.mark.slow
def test_many_killed_trainings_end_as_if_nothing_had_happened(children: Nursery) -> None:
    """LEADLINE_KILLS says how many; 300 take about five minutes of an idle core."""
    told(children, int(os.environ.get("LEADLINE_KILLS", "60")), each=10)


class Killer:
    """Kills one of the processes that belong to this one each time a run has come so far, `most` times."""

    def __init__(self, most: int) -> None:
        self.left, self.kills, self.notes = most, 0, list[str]()

    def started(self, unit: object) -> None: ...

    def advanced(self, unit: object, share: float) -> None:
        children = multiprocessing.active_children()
        if self.left and children:
            os.kill(children[0].pid or 0, signal.SIGKILL)
            self.left, self.kills = self.left - 1, self.kills + 1

    def note(self, text: str) -> None:
        self.notes.append(text)


def unit(seed: int) -> RunConfig:
    return RunConfig.parse(
        {
            "model": {"name": "resnet-8", "args": {"widths": [2, 2, 4]}},
            "data": {"name": "digits", "batch_size": 32},
            "optimizer": {"lr": 0.05},
            "training": {"steps": 150},
            "seed": seed,
        }
    )


def test_a_killed_worker_of_the_pool_costs_nothing(tmp_path: Path) -> None:
    units, killer = [unit(seed) for seed in range(2)], Killer(1)
    settings = Settings(checkpoint_seconds=0.05)
    outcomes = list(execute(units, tmp_path / "pool", workers=2, settings=settings, progress=killer))
    assert killer.kills == 1 and sum("SIGKILL" in note for note in killer.notes) == 1
    assert [outcome.error for outcome in outcomes] == ["", ""] and max(o.attempts for o in outcomes) == 2
    lost = 0
    for each in units:
        alone = content(run_one(each, tmp_path / "alone", settings=settings).folder)
        lost += content(RunFolder(tmp_path / "pool" / each.identity)) != alone
    print(f"\n{killer.kills} killed worker, {lost} runs that differ")
    assert not lost


def test_a_run_killed_before_its_outcome_was_written_only_writes_it(tmp_path: Path) -> None:
    folder = run_one(unit(0), tmp_path).folder
    wanted = content(folder)
    folder.done_json.unlink()
    (folder.path / ".done.json.123.part").write_bytes(wanted["done.json"][:20])
    assert read(folder.path).state == "dead" and read(folder.path).outcome is None
    assert content(run_one(unit(0), tmp_path).folder) == wanted
