"""Turns one RunConfig into a finished run folder; an unfinished one goes on from its last checkpoint."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from leadline.core.config import RunConfig
from leadline.execute.settings import Diverged, Progress, Settings, Silent, Stopped, device
from leadline.execute.watch import Watch
from leadline.execute.workshop import Workshop, build_model
from leadline.store.layout import RunFolder, read_json
from leadline.store.writer import RunWriter
from leadline.train import checkpoint

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
    if folder.done_json.exists():
        return finished(folder)
    torch.set_num_threads(settings.threads)
    workshop = Workshop.build(config, device(settings.device), compiled=settings.compile)
    at, notes = checkpoint.newest(folder.checkpoint)
    for note in notes:
        progress.note(note)
    position = workshop.restore(at) if at else checkpoint.Position(0, 0, {})
    sounder = workshop.sounder()
    with RunWriter(folder.path, resume_at=position.readings_bytes) as writer:
        writer.describe(workshop.record() | (sounder.describe() if sounder else {}))
        watch = Watch(workshop, writer, settings, progress, sounder=sounder, best=dict(position.best))
        progress.begin(folder.path.name, step=position.step, steps=workshop.steps, batch=config.data.batch_size)
        try:
            watch.run(position.step)
        finally:
            progress.end()
    return finished(folder)


def finished(folder: RunFolder) -> Result:
    """The result of a run that is done; one that diverged raises what it raised the first time."""
    outcome = read_json(folder.done_json, what="the outcome of a run")
    if outcome.get("outcome") == "diverged":
        raise Diverged(str(outcome.get("message")))
    return Result(folder, outcome)
