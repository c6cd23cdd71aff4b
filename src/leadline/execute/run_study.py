"""Turns one Study into a finished run folder; what it yields is written as readings of the probe `study`."""

import importlib
import time
from collections.abc import Callable
from pathlib import Path

import torch

from leadline.core.errors import UsageError
from leadline.core.study import Measure, Study
from leadline.execute import environment
from leadline.execute.run_one import Progress, Settings, Silent, Stopped
from leadline.store.layout import RunFolder
from leadline.store.writer import RunWriter
from leadline.train import seeds

PROBE = "study"


def run_study(
    study: Study, root: Path, *, settings: Settings | None = None, progress: Progress | None = None
) -> RunFolder:
    """Measures into `root/<identity>`; a finished study is never done twice, an interrupted one starts again.

    What a study had written before it was interrupted stays and is not written again as long as it comes out the same.
    """
    settings, progress = settings or Settings(), progress or Silent()
    folder = RunFolder(root / study.identity)
    if folder.done:
        return folder
    measure = function(study.function)
    torch.set_num_threads(settings.threads)
    seeds.seed_all(study.seed)
    with RunWriter(folder.path) as writer:
        writer.describe({"study": study.spec.to_json(), "digest": study.digest, "environment": environment.describe()})
        start = time.monotonic()
        progress.begin(folder.path.name, step=0, steps=0, batch=1)
        for step, name, value in measure(**study.args):
            writer.append(step, PROBE, name, value)
            if settings.stop():
                raise Stopped(f"{study} was stopped; it starts again")
        writer.finish({"outcome": "finished", "seconds": round(time.monotonic() - start, 3)})
        progress.end()
    return folder


def function(place: str) -> Callable[..., Measure]:
    """The generator function called `module:name`."""
    module, _, name = place.partition(":")
    try:
        found: Callable[..., Measure] = getattr(importlib.import_module(module), name)
    except (ModuleNotFoundError, AttributeError) as error:
        raise UsageError(f"study {place!r} is not there ({error}); expected module:function") from None
    return found
