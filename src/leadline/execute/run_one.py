"""Turns one RunConfig into a finished run folder; an unfinished one goes on from its last checkpoint."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from leadline import data
from leadline.core.config import RunConfig
from leadline.core.errors import LeadlineError, UsageError
from leadline.data import Batches, Dataset
from leadline.execute import environment
from leadline.models.chain import Chain
from leadline.models.names import resolve
from leadline.probes import Splits
from leadline.projections import Procrustes
from leadline.store.layout import RunFolder, read_json
from leadline.store.writer import RunWriter
from leadline.taps.inputs import understand
from leadline.train import checkpoint, optim, seeds
from leadline.train.evaluate import Score, evaluate, loss_function
from leadline.train.loop import NotFinite, Trainer
from leadline.train.presets import choose
from leadline.train.sounder import Sounder, look

LARGE = 96
DTYPES = {"fp32": torch.float32, "bf16": torch.float32, "fp64": torch.float64}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a run is executed; nothing here decides its numbers beyond rounding, so none of it is in its identity."""

    device: str = "auto"
    compile: bool = False
    threads: int = 1
    checkpoint_seconds: float = 20.0
    stop: Callable[[], bool] = field(default=lambda: False)


class Progress(Protocol):
    """Who is told how far a run is."""

    def begin(self, name: str, *, step: int, steps: int, batch: int) -> None: ...

    def advance(self, step: int, loss: float) -> None: ...

    def scored(self, step: int, score: Score) -> None: ...

    def note(self, text: str) -> None: ...

    def end(self) -> None: ...


class Silent:
    """Tells nobody."""

    def begin(self, name: str, *, step: int, steps: int, batch: int) -> None: ...

    def advance(self, step: int, loss: float) -> None: ...

    def scored(self, step: int, score: Score) -> None: ...

    def note(self, text: str) -> None: ...

    def end(self) -> None: ...


class Stopped(LeadlineError):
    """The run was asked to stop; it goes on when it is started again."""

    exit_code = 130


class Diverged(LeadlineError):
    """The run ended in a loss that is no number."""


@dataclass(frozen=True)
class Result:
    """A finished run: its folder and what done.json says."""

    folder: RunFolder
    outcome: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        return {"run": str(self.folder.path), **self.outcome}


def device(name: str) -> torch.device:
    """The device of that name; `auto` is the first accelerator there is, else the CPU."""
    found = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        return torch.device("cuda" if found["cuda"] else "mps" if found["mps"] else "cpu")
    kind = name.split(":")[0]
    if kind not in found:
        raise UsageError(f"unknown device {name!r}; expected auto, cpu, cuda or mps")
    if not found[kind]:
        raise UsageError(f"device {name!r} is not there; found {', '.join(k for k, there in found.items() if there)}")
    return torch.device(name)


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


@dataclass(frozen=True, kw_only=True)
class Workshop:
    """Everything built from a configuration: data, model, trainer, projection, and how many steps there are."""

    config: RunConfig
    dataset: Dataset
    model: Chain
    trainer: Trainer
    batches: Batches
    test: Batches
    steps: int
    procrustes: Procrustes | None = None

    @classmethod
    def build(
        cls, config: RunConfig, where: torch.device, *, dataset: Dataset | None = None, compiled: bool = False
    ) -> "Workshop":
        """Model and trainer as configured, on the data set named there or on one that is at hand."""
        dataset = dataset or data.load(config.data.name, **config.data.args)
        cut = partial(_batches, config, dataset, where)
        batches, test = cut(train=True), cut(train=False)
        seeds.seed_all(config.seed)
        model = build_model(config, dataset).to(where)
        steps = config.training.steps or (config.training.epochs or 1) * len(batches)
        trainer = _trainer(config, model, dataset, steps=steps, per_epoch=len(batches), compiled=compiled)
        return cls(
            config=config,
            dataset=dataset,
            model=model,
            trainer=trainer,
            batches=batches,
            test=test,
            steps=steps,
            procrustes=_procrustes(config, model, trainer),
        )

    def record(self) -> dict[str, Any]:
        """What run.json says."""
        parameters = sum(parameter.numel() for parameter in self.model.parameters())
        return {
            "config": self.config.model_dump(mode="json"),
            "digest": self.config.digest,
            "steps": self.steps,
            "steps_per_epoch": len(self.batches),
            "parameters": parameters,
            "data_digest": self.dataset.digest,
            "environment": environment.describe(),
        }

    def sounder(self) -> Sounder | None:
        """What takes the readings of the configured probes; their own passes are on the first batch of the run."""
        if not self.config.probes:
            return None
        inputs = understand(self.model, next(self.batches.epoch(0)))
        return Sounder(
            model=self.model,
            anatomy=look(self.model, inputs),
            probes=choose(self.config.probes),
            inputs=inputs,
            loss_fn=self.trainer.loss_fn,
            optimizer=self.trainer.optimizer,
            splits=Splits(Again(self.batches), Again(self.test)),
            last=self.steps - 1,
        )

    def restore(self, at: Path) -> checkpoint.Position:
        """Loads a checkpoint; where it stands."""
        return checkpoint.read(at, self.model, self.trainer.optimizer, procrustes=self.procrustes)

    def save(self, folder: Path, position: checkpoint.Position) -> None:
        """Writes a checkpoint."""
        checkpoint.write(folder, self.model, self.trainer.optimizer, position, procrustes=self.procrustes)

    def score(self) -> Score:
        """The model on the test split."""
        everything = self.test.epoch(0)
        return evaluate(self.model, everything, self.trainer.loss_fn, autocast=self.trainer.autocast())


def build_model(config: RunConfig, dataset: Dataset) -> Chain:
    """The named model, fitted to the data where the configuration leaves that open."""
    named = resolve(config.model.name)
    fitting: dict[str, object] = {"num_classes": dataset.classes, "in_channels": dataset.shape[0]}
    if len(dataset.shape) == 3 and min(dataset.shape[1:]) > LARGE:
        fitting["stem"] = "imagenet"
    open_options = {key: value for key, value in fitting.items() if key in named.family.options}
    model = named.build(
        **{key: value for key, value in open_options.items() if key not in named.preset} | config.model.args
    )
    model.takes.check(torch.empty(1, *dataset.shape, device="meta"))
    if config.training.channels_last or config.training.precision == "bf16":
        model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return model.to(DTYPES[config.training.precision])


@torch.no_grad()
def first_bad_block(model: Chain, x: Tensor) -> str | None:
    """The first boundary at which the batch is not finite any more; None if all are."""
    for name in model.boundary_names:
        x = model.get_submodule(name)(x)
        if not x.isfinite().all():
            return name
    return None


def _batches(config: RunConfig, dataset: Dataset, where: torch.device, *, train: bool) -> Batches:
    part = config.data
    images = len(dataset.shape) == 3
    return Batches(
        dataset.train if train else dataset.test,
        batch_size=part.batch_size,
        seed=config.seed,
        augment=part.augment if train else "none",
        pad=part.pad,
        normalise=(dataset.mean, dataset.std) if part.normalise and images else None,
        device=where,
        dtype=DTYPES[config.training.precision],
        channels_last=images and (config.training.channels_last or config.training.precision == "bf16"),
        shuffle=train,
        drop_last=train,
    )


def _trainer(
    config: RunConfig, model: Chain, dataset: Dataset, *, steps: int, per_epoch: int, compiled: bool
) -> Trainer:
    part = config.training
    if config.data.batch_size % part.accumulate:
        raise UsageError(f"batch size {config.data.batch_size} cannot be cut into {part.accumulate} equal pieces")
    if part.checkpoint_blocks:
        model.checkpoint_blocks = True
    kind = next(model.parameters()).device.type
    autocast: Callable[[], AbstractContextManager[object]] = (
        partial(torch.autocast, kind, dtype=torch.bfloat16) if part.precision == "bf16" else nullcontext
    )
    return Trainer(
        forward=torch.compile(model) if compiled else model,
        model=model,
        optimizer=optim.build(config.optimizer, model),
        loss_fn=loss_function(part.loss, dataset.train.targets[:1]),
        rate=optim.rate(config.schedule, base=config.optimizer.lr, steps=steps, steps_per_epoch=per_epoch),
        autocast=autocast,
        accumulate=part.accumulate,
        clip=part.clip,
    )


def _procrustes(config: RunConfig, model: Chain, trainer: Trainer) -> Procrustes | None:
    if config.projection is None:
        return None
    part = config.projection.model_dump()
    return Procrustes(model, **part, seed=config.seed).attach(trainer.optimizer)


@dataclass(frozen=True)
class Again:
    """The batches of the first epoch, as often as they are asked for."""

    batches: Batches

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        return self.batches.epoch(0)


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


def _better(score: Score, best: dict[str, float]) -> bool:
    if math.isnan(score.accuracy):
        return score.loss < best["loss"]
    return score.accuracy > best["accuracy"]


def _plain(numbers: dict[str, float]) -> dict[str, float | None]:
    """JSON has no nan: an accuracy that does not exist is null."""
    return {name: value if math.isfinite(value) else None for name, value in numbers.items()}
