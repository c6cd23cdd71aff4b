"""Check a model: why does it not train, and what to change."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from torch import nn
from torch.optim import Adam, Optimizer

from leadline.core.errors import UsageError
from leadline.diagnosis.evidence import Evidence
from leadline.diagnosis.finding import Diagnosis
from leadline.diagnosis.judge import judge
from leadline.diagnosis.thresholds import thresholds as limits
from leadline.execute.keep import keep, usable
from leadline.execute.rehearse import rehearse
from leadline.store.reader import Run
from leadline.taps.inputs import eager
from leadline.train.sounder import LossFunction

STEPS = 60
BUDGET = 50.0
RATE = 1e-3


def check(
    model: nn.Module,
    batch: Any,
    loss_fn: LossFunction,
    optimizer: Optimizer | None = None,
    *,
    batches: Iterable[Any] = (),
    steps: int = STEPS,
    budget: float = BUDGET,
    select: Collection[str] = (),
    ignore: Collection[str] = (),
    thresholds: Path | None = None,
    to: str | Path | None = None,
) -> Diagnosis:
    """Measure `model` as it is, rehearse `steps` steps of its training on copies, and say what is wrong with it.

    `batch` is (inputs, targets), or what `forward` takes; the loss is `loss_fn(output, targets)`. Further `batches` of
    the same make let data that cannot be learned be told from a network that cannot learn. Without an optimiser Adam
    at 1e-3 is used. `budget` is in seconds and is kept but for the step that is under way. The model, its gradients
    and its optimiser are left as they are. `select` and `ignore` take ids of findings, or their beginnings. `to` is a
    folder to keep the readings in, as those of a run, and the diagnosis.
    """
    inner = eager(model)
    if steps < 1 or budget <= 0:
        raise UsageError(f"steps={steps}, budget={budget}: expected at least one step and more than 0 seconds")
    wanted = [parameter for parameter in inner.parameters() if parameter.requires_grad]
    if not wanted:
        why = "all its parameters are frozen" if any(True for _ in inner.parameters()) else "it has no parameters"
        raise UsageError(f"{type(inner).__name__} cannot be trained: {why}")
    decided = limits(thresholds)
    folder = None if to is None else usable(Path(to))
    shown = [batch, *islice(batches, steps - 1)]
    found = rehearse(inner, shown, loss_fn, optimizer or Adam(wanted, lr=RATE), steps=steps, budget=budget)
    evidence = Evidence(found.record, found.readings)
    said = judge(evidence, seconds=found.seconds, limits=decided, select=select, ignore=ignore)
    if folder is not None:
        keep(folder, found.record, found.readings, said)
    return said


def check_run(
    run: Run, *, select: Collection[str] = (), ignore: Collection[str] = (), thresholds: Path | None = None
) -> Diagnosis:
    """The same from the readings of a run, finished, growing or broken off; nothing is trained."""
    if not run.readings.height:
        raise UsageError(f"{run.name} has no readings yet; check it again once it has made a step")
    found = judge(Evidence(run.record, run.readings), limits=limits(thresholds), select=select, ignore=ignore)
    return replace(found, measured=(f"a run that is {run.state}", *run.notes, *found.measured))
