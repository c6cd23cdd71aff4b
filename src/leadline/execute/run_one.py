"""Turns one RunConfig into a finished run folder; an unfinished one goes on from its last checkpoint."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from leadline.core.config import RunConfig
from leadline.core.errors import UnreadableError
from leadline.execute.settings import Diverged, Progress, Settings, Silent, Stopped, device
from leadline.execute.together import in_company
from leadline.execute.watch import Watch
from leadline.execute.workshop import Workshop, build_model
from leadline.store.layout import RunFolder, read_json
from leadline.store.sinks import chosen, writing
from leadline.store.writer import RunWriter
from leadline.train import checkpoint
from leadline.train.processes import everyones, first_finds
from leadline.train.sounder import Sounder

__all__ = [
    "Diverged",
    "Progress",
    "Result",
    "Settings",
    "Silent",
    "Stopped",
    "build_model",
    "device",
    "finished",
    "run_one",
]


@dataclass(frozen=True)
class Result:
    """A finished run: its folder and what done.json says."""

    folder: RunFolder
    outcome: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        return {"run": str(self.folder.path), **self.outcome}


def run_one(
    config: RunConfig, root: Path, *, settings: Settings | None = None, progress: Progress | None = None
) -> Result:
    """Trains what `config` says into `root/<identity>`; a finished run is returned as it is, never done twice."""
    settings, progress = settings or Settings(), progress or Silent()
    folder = RunFolder(root / config.identity)
    if not first_finds(lambda: folder.done):
        torch.set_num_threads(settings.threads)
        where = device(settings.device)
        workshop = Workshop.build(config, where, compiled=settings.compile, way=settings.parallel)
        sounder = workshop.sounder()
        with in_company(), _written(folder, settings) as writer:
            # another process may have ended it while this one waited for the lock
            if not first_finds(lambda: folder.done):
                _go_on(workshop, sounder, folder, writer, settings=settings, progress=progress)
    return finished(folder)


@contextmanager
def _written(folder: RunFolder, settings: Settings) -> Iterator[RunWriter | None]:
    """The run folder, open for writing by the first process."""
    opened: list[RunWriter] = []
    first_finds(lambda: opened.append(writing(folder.path, sinks=chosen(settings.sinks))))
    try:
        yield opened[0] if opened else None
    finally:
        for writer in opened:
            writer.close()


def _go_on(
    workshop: Workshop,
    sounder: Sounder | None,
    folder: RunFolder,
    writer: RunWriter | None,
    *,
    settings: Settings,
    progress: Progress,
) -> None:
    """Trains from the last checkpoint to the end."""
    position, notes = _restored(workshop, folder)
    record = workshop.record() | (sounder.describe() if sounder else {})
    if writer:
        writer.go_on(position.readings_bytes)
        writer.describe(record)
    best = dict(position.best)
    watch = Watch(workshop, writer, settings, progress, best=best, folder=folder, sounder=sounder)
    batch = workshop.config.data.batch_size
    progress.begin(folder.path.name, step=position.step, steps=workshop.steps, batch=batch)
    for note in notes:
        progress.note(note)
    try:
        watch.run(position.step)
    finally:
        progress.end()


def _restored(workshop: Workshop, folder: RunFolder) -> tuple[checkpoint.Position, list[str]]:
    """Where the run stands, everything brought there, and what was wrong with checkpoints on the way."""
    at, notes = first_finds(lambda: checkpoint.newest(folder.checkpoint, readings=folder.recorded))
    if at is None:
        return checkpoint.Position(0, 0, {}), notes
    blind = [number for number, sees in enumerate(everyones(at.is_dir())) if not sees]
    if blind:
        raise UnreadableError(f"process {blind[0]} does not see {at}; expected a folder that all nodes share")
    return workshop.restore(at), notes


def finished(folder: RunFolder) -> Result:
    """The result of a run that is done; one that diverged raises what it raised the first time."""
    outcome = first_finds(lambda: read_json(folder.done_json, what="the outcome of a run"))
    if outcome.get("outcome") == "diverged":
        raise Diverged(str(outcome.get("message")))
    return Result(folder, outcome)
