"""Trains small runs and kills them at random moments, many times each; compares with runs that nobody disturbed.

    python tests/faults/killing.py --kills 300

prints how many processes were killed, where they were, and how many runs came out otherwise (which must be none).
"""

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from faults.nursery import Nursery, nursery

from leadline.store.layout import RunFolder

SMALL = ["--arg", "widths=2,2,4", "--data-arg", "train=256", "--data-arg", "test=64", "--batch-size", 32]
KINDS = {
    "sgd, augmentation, probes": [*SMALL, "--lr", 0.05, "--steps", 120, "--augment", "crop-flip", "--probes", "light"],
    "adam, accumulation": [*SMALL, "--optimizer", "adam", "--lr", 0.01, "--steps", 150, "--accumulate", 2],
    "projections": [*SMALL, "--lr", 0.02, "--steps", 120, "--set", 'projection={"every":2,"schedule":"random"}'],
}
MODELS = {"projections": "procresnet-22"}
MEMORY = Path("/dev/shm")
"""What is written survives the end of a process there too, and no time goes by waiting for a disk."""
SHARE = 0.4
"""A process is killed after a random part of so much of the time that a whole run takes."""


@dataclass
class Tally:
    """What was done and what came of it."""

    kills: int = 0
    runs: int = 0
    before_run_json: int = 0
    in_a_checkpoint: int = 0
    in_a_line: int = 0
    after_the_last_checkpoint: int = 0
    lost_lines: int = 0
    different_runs: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def losses(self) -> int:
        return self.lost_lines + len(self.different_runs)


def words(kind: str, seed: int, out: Path) -> list[object]:
    """The command of a run."""
    model = MODELS.get(kind, "resnet-8")
    return ["train", model, *KINDS[kind], "--seed", seed, "--out", out, "--checkpoint-seconds", 0.02]


def content(folder: RunFolder) -> dict[str, bytes]:
    """All that a run is, as bytes: readings, outcome, last checkpoint; of run.json, which has a date, the name."""
    last = max(folder.checkpoint.iterdir())
    files = [path for path in folder.path.rglob("*") if path.is_file()]
    found = {str(path.relative_to(folder.path)): path.read_bytes() for path in files if path.parent != last.parent}
    return {
        name: b"" if name == "run.json" else what
        for name, what in found.items()
        if not name.startswith("checkpoint/step-") or name.startswith(f"checkpoint/{last.name}/")
    }


def only(root: Path) -> RunFolder:
    """The one run folder there is or will be."""
    return RunFolder(next(iter(root.iterdir()), root / "none"))


def disturbed(children: Nursery, root: Path, kind: str, seed: int, *, most: int, tally: Tally) -> None:
    """One run, killed `most` times at most; its end is compared with that of the same run left alone."""
    wanted, seconds = _undisturbed(children, root / "whole", kind, seed)
    chance, kills, kept = random.Random(f"{kind} {seed}"), 0, b""
    while True:
        child = children.command(*words(kind, seed, root / "killed"))
        if kills < most:
            child.kill_after(chance.uniform(0.0, SHARE * seconds))
        ended = child.wait()
        folder = only(root / "killed")
        kept = _held(folder, kept, wanted["readings.jsonl"], tally)
        if not ended.killed:
            break
        kills += 1
        _note_where(folder, tally)
    tally.kills, tally.runs = tally.kills + kills, tally.runs + 1
    found = content(folder) if ended.code == 0 else {}
    if found != wanted:
        other = [name for name in wanted if found.get(name) != wanted[name]]
        tally.different_runs.append(f"{kind}, seed {seed}: {', '.join(other)}; exit {ended.code} {ended.err[-500:]}")


def _undisturbed(children: Nursery, root: Path, kind: str, seed: int) -> tuple[dict[str, bytes], float]:
    """What the run is, and the CPU seconds it takes."""
    ended = children.command(*words(kind, seed, root)).wait()
    assert ended.code == 0, ended.err
    return content(only(root)), ended.seconds


def _held(folder: RunFolder, kept: bytes, wanted: bytes, tally: Tally) -> bytes:
    """The whole lines there are now; those of before have to be among them, and all have to be as if undisturbed."""
    now = folder.readings.read_bytes() if folder.readings.exists() else b""
    whole = now[: now.rfind(b"\n") + 1]
    if not whole.startswith(kept) or not wanted.startswith(whole):
        tally.lost_lines += 1
    return whole


def _note_where(folder: RunFolder, tally: Tally) -> None:
    tally.before_run_json += not folder.run_json.exists()
    tally.in_a_checkpoint += any(folder.checkpoint.glob(".*.part"))
    readings = folder.readings.read_bytes() if folder.readings.exists() else b""
    tally.in_a_line += not readings.endswith(b"\n") and bool(readings)
    steps = json.loads(folder.run_json.read_bytes())["steps"] if folder.run_json.exists() else 0
    tally.after_the_last_checkpoint += (folder.checkpoint / f"step-{steps:09d}").exists()


def killed(children: Nursery, root: Path, *, kills: int, each: int = 10) -> Tally:
    """At least so many kills, about `each` a run, the kinds of runs in turn."""
    tally, start, seed = Tally(), time.monotonic(), 0
    while tally.kills < kills:
        for kind in KINDS:
            place = root / f"{seed}-{kind.split(',')[0]}"
            for name in ("whole", "killed"):
                (place / name).mkdir(parents=True)
            most = min(each, kills - tally.kills)
            if most > 0:
                disturbed(children, place, kind, seed, most=most, tally=tally)
            shutil.rmtree(place)
        seed += 1
    tally.seconds = round(time.monotonic() - start, 1)
    return tally


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=300)
    place = tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None)
    with place as scratch, nursery(Path(scratch)) as many:
        found = killed(many, Path(scratch), kills=parser.parse_args().kills)
    print(json.dumps(asdict(found) | {"losses": found.losses}, indent=1))
    sys.exit(bool(found.losses))
