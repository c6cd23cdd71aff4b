"""Watch: stands beside the training loop and turns what happens there into a run folder."""

import math
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import torch
from torch import Tensor

from leadline.execute.settings import Progress, Settings, Stopped
from leadline.execute.workshop import Workshop
from leadline.models.chain import Chain
from leadline.store.writer import RunWriter
from leadline.train import checkpoint, seeds
from leadline.train.evaluate import Score
from leadline.train.loop import NotFinite
from leadline.train.sounder import Sounder


@dataclass
class Watch:
    """Stands beside the loop: records, evaluates, writes checkpoints, tells how far it is, ends the run."""

    workshop: Workshop
    writer: RunWriter
    settings: Settings
    progress: Progress
    best: dict[str, float]
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
        self.writer.append(step, "loss", "train/loss", value)
        self.progress.advance(step + 1, value)

    def updated(self, step: int, loss: Tensor) -> None:
        if self.sounder and self.sounder.due(step):
            for probe, (name, value, notes) in self.sounder.read(step, loss.item()):
                self.writer.append(step, probe, name, value, notes=notes)

    def after(self, steps: int) -> bool:
        last, per_epoch = steps == self.workshop.steps, len(self.workshop.batches)
        due = steps % (per_epoch * self.workshop.config.training.evaluate_every) == 0
        if last or due:
            score = self._evaluate(steps)
            self.save(steps)
            if last:
                self._finish(score)
        elif time.monotonic() - self._saved > self.settings.checkpoint_seconds:
            self.save(steps)
        if self.settings.stop() and not last:
            self.save(steps)
            raise Stopped(f"stopped after step {steps} of {self.workshop.steps}; the same command goes on from there")
        return True

    def save(self, steps: int) -> None:
        """Writes a checkpoint; readings first, so that it never speaks of more than there is."""
        self.writer.flush()
        position = checkpoint.Position(steps, self.writer.position, self.best)
        self.workshop.save(self.writer.folder.checkpoint, position)
        self._saved = time.monotonic()

    def _evaluate(self, steps: int) -> Score:
        with seeds.untouched():
            score = self.workshop.score()
        self.writer.append(steps, "evaluate", "test/loss", score.loss)
        if not math.isnan(score.accuracy):
            self.writer.append(steps, "evaluate", "test/accuracy", score.accuracy)
        if not self.best or _better(score, self.best):
            self.best = {"step": steps, "loss": score.loss, "accuracy": score.accuracy}
        self.progress.scored(steps, score)
        return score

    def _finish(self, score: Score) -> None:
        self.writer.finish(
            {
                "outcome": "finished",
                "steps": self.workshop.steps,
                "last": _plain({"loss": score.loss, "accuracy": score.accuracy}),
                "best": _plain(self.best),
            }
        )

    def _diverged(self, error: NotFinite) -> None:
        block = first_bad_block(self.workshop.model, error.inputs)
        where = f"; the first block whose output is not finite is {block}" if block else ""
        message = f"the loss is {error.value} at step {error.step}{where}"
        self.writer.finish(
            {"outcome": "diverged", "steps": error.step, "block": block, "message": message, "best": _plain(self.best)}
        )


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
