"""Watch: stands beside the training loop and turns what happens there into a run folder.

Of several processes the first one writes; what it decides by its clock or by a signal, all of them know and do.
"""

import math
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from leadline.execute.settings import Progress, Settings, Stopped
from leadline.execute.workshop import Workshop
from leadline.models.chain import Chain
from leadline.store.layout import RunFolder
from leadline.store.writer import RunWriter, Value
from leadline.train import checkpoint, seeds
from leadline.train.batch_norm import alone
from leadline.train.evaluate import Score
from leadline.train.loop import NotFinite
from leadline.train.processes import anyones, everyones
from leadline.train.sounder import Sounder


@dataclass
class Watch:
    """Stands beside the loop: records, evaluates, writes checkpoints, tells how far it is, ends the run."""

    workshop: Workshop
    writer: RunWriter | None
    settings: Settings
    progress: Progress
    best: dict[str, float]
    folder: RunFolder
    sounder: Sounder | None = None
    _saved: float = field(default_factory=time.monotonic)

    def run(self, start: int) -> None:
        try:
            self.workshop.trainer.run(self.workshop.batches, self, start=start, steps=self.workshop.steps)
        except NotFinite as error:
            self._diverged(error)
            return
        finally:
            if self.sounder:
                self.sounder.close()
        if start == self.workshop.steps:
            # killed between the last checkpoint and done.json
            self._finish(self.workshop.score())

    def around(self, step: int, inputs: Tensor, targets: Tensor) -> AbstractContextManager[object]:  # noqa: ARG002
        if self.sounder:
            self.sounder.begin(step)
            if inputs.is_floating_point() and _listens_at_input(self.sounder, step):
                inputs.requires_grad_()
        return nullcontext()

    def loss(self, step: int, value: float) -> None:
        self._append(step, "loss", "train/loss", value)
        self.progress.advance(step + 1, value)

    def updated(self, step: int, loss: Tensor) -> None:
        if self.sounder and self.sounder.due(step):
            for probe, (name, value, notes) in self.sounder.read(step, loss.item()):
                self._append(step, probe, name, value, notes)

    def after(self, steps: int) -> bool:
        last, per_epoch = steps == self.workshop.steps, len(self.workshop.batches)
        due = steps % (per_epoch * self.workshop.config.training.evaluate_every) == 0
        late = time.monotonic() - self._saved > self.settings.checkpoint_seconds
        late, stop = anyones(late, self.settings.stop())
        if last or due:
            score = self._evaluate(steps)
            self.save(steps)
            if last:
                self._finish(score)
        elif late:
            self.save(steps)
        if stop and not last:
            self.save(steps)
            raise Stopped(f"stopped after step {steps} of {self.workshop.steps}; the same command goes on from there")
        return True

    def save(self, steps: int) -> None:
        """Writes a checkpoint; readings first, so that it never speaks of more than there is."""
        if self.writer:
            self.writer.flush()
        position = checkpoint.Position(steps, self.writer.position if self.writer else 0, self.best)
        self.workshop.save(self.folder.checkpoint, position)
        self._saved = time.monotonic()

    def _evaluate(self, steps: int) -> Score:
        with seeds.untouched():
            score = self.workshop.score()
        self._append(steps, "evaluate", "test/loss", score.loss)
        if not math.isnan(score.accuracy):
            self._append(steps, "evaluate", "test/accuracy", score.accuracy)
        if not self.best or _better(score, self.best):
            self.best = {"step": steps, "loss": score.loss, "accuracy": score.accuracy}
        self.progress.scored(steps, score)
        return score

    def _append(self, step: int, probe: str, name: str, value: Value, notes: Mapping[int, str] | None = None) -> None:
        if self.writer:
            self.writer.append(step, probe, name, value, notes=notes)

    def _end(self, outcome: Mapping[str, Any]) -> None:
        if self.writer:
            self.writer.finish(outcome)

    def _finish(self, score: Score) -> None:
        self._end(
            {
                "outcome": "finished",
                "steps": self.workshop.steps,
                "last": _plain({"loss": score.loss, "accuracy": score.accuracy}),
                "best": _plain(self.best),
            }
        )

    def _diverged(self, error: NotFinite) -> None:
        block = self._first_bad_block(error.inputs)
        where = f"; the first block whose output is not finite is {block}" if block else ""
        message = f"the loss is {error.value} at step {error.step}{where}"
        self._end(
            {"outcome": "diverged", "steps": error.step, "block": block, "message": message, "best": _plain(self.best)}
        )

    def _first_bad_block(self, inputs: Tensor) -> str | None:
        model = self.workshop.parallel.readable()
        assert isinstance(model, Chain)
        with alone(model):
            bad = first_bad_block(model, inputs)
        names = [*model.boundary_names, None]
        return names[min(everyones(names.index(bad)))]


@torch.no_grad()
def first_bad_block(model: Chain, x: Tensor) -> str | None:
    """The first boundary at which the batch is not finite any more; None if all are."""
    for name in model.boundary_names:
        x = model.get_submodule(name)(x)
        if not x.isfinite().all():
            return name
    return None


def _better(score: Score, best: dict[str, float]) -> bool:
    if math.isnan(score.accuracy):
        return score.loss < best["loss"]
    return score.accuracy > best["accuracy"]


def _listens_at_input(sounder: Sounder, step: int) -> bool:
    """Whether a probe of this step wants the gradient at the model's own input, which no training needs."""
    taps = (tap for probe in sounder.due(step).values() for tap in probe.taps(sounder.anatomy))
    return any(tap.of == "gradient" and (tap.place.module, tap.place.side) == ("", "in") for tap in taps)


def _plain(numbers: dict[str, float]) -> dict[str, float | None]:
    """JSON has no nan: an accuracy that does not exist is null."""
    return {name: value if math.isfinite(value) else None for name, value in numbers.items()}
