"""Workshop: what is built from a configuration before its first step."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from leadline import data
from leadline.core.config import RunConfig
from leadline.core.errors import UsageError
from leadline.data import Batches, Dataset
from leadline.execute import environment
from leadline.execute.guessing import LossFunction, guessing
from leadline.models.chain import Chain
from leadline.models.names import resolve
from leadline.probes import Splits
from leadline.projections import Procrustes
from leadline.taps.inputs import understand
from leadline.train import checkpoint, optim, seeds
from leadline.train.batch_norm import share
from leadline.train.evaluate import Score, evaluate, loss_function
from leadline.train.loop import Trainer
from leadline.train.parallel import Parallel
from leadline.train.presets import choose
from leadline.train.processes import added, rank, world
from leadline.train.sounder import Sounder, look
from leadline.train.spread import SpreadProcrustes

LARGE = 96
GUESSED = 1024
"""So many training samples tell what guessing costs."""
DTYPES = {"fp32": torch.float32, "bf16": torch.float32, "fp64": torch.float64}


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
    parallel: Parallel
    procrustes: Procrustes | None = None

    @classmethod
    def build(
        cls,
        config: RunConfig,
        where: torch.device,
        *,
        dataset: Dataset | None = None,
        compiled: bool = False,
        way: str = "ddp",
    ) -> "Workshop":
        """Model and trainer as configured, on the data set named there or on one that is at hand.

        Each of several processes has its share of every batch, and of the model what `way` says.
        """
        dataset = dataset or data.load(config.data.name, **config.data.args)
        cut = partial(_batches, config, dataset, where)
        batches, test = cut(train=True), cut(train=False)
        seeds.seed_all(config.seed)
        model = build_model(config, dataset).to(where)
        share(model, config.training.local_norm)
        parallel = Parallel.of(model, [*model.blocks], way)
        steps = config.training.steps or (config.training.epochs or 1) * len(batches)
        trainer = _trainer(config, model, parallel, dataset, steps=steps, per_epoch=len(batches), compiled=compiled)
        procrustes = _procrustes(config, model, trainer)
        if rank():
            # after everything that all of them have to draw alike
            seeds.seed_all(config.seed, rank())
        return cls(
            config=config,
            dataset=dataset,
            model=model,
            trainer=trainer,
            batches=batches,
            test=test,
            steps=steps,
            parallel=parallel,
            procrustes=procrustes,
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
            "start": {"chance": chance(self.dataset, self.trainer.loss_fn)},
            "environment": environment.describe() | {"processes": world()},
        }

    def sounder(self) -> Sounder | None:
        """What takes the readings of the configured probes; their own passes are on the first batch of the run."""
        if not self.config.probes:
            return None
        batches, test = alone(self.batches), alone(self.test)
        readable = self.parallel.readable()
        inputs = understand(readable, next(batches.epoch(0)))
        return Sounder(
            model=self.model,
            readable=self.parallel.readable,
            anatomy=look(readable, inputs),
            probes=choose(self.config.probes),
            inputs=inputs,
            loss_fn=self.trainer.loss_fn,
            optimizer=self.trainer.optimizer,
            splits=Splits(Again(batches), Again(test)),
            last=self.steps - 1,
        )

    def restore(self, at: Path) -> checkpoint.Position:
        """Loads a checkpoint; where it stands."""
        return checkpoint.read(at, self.model, self.trainer.optimizer, procrustes=self.procrustes)

    def save(self, folder: Path, position: checkpoint.Position) -> None:
        """Writes a checkpoint."""
        self.parallel.agree()
        checkpoint.write(folder, self.model, self.trainer.optimizer, position, procrustes=self.procrustes)

    def score(self) -> Score:
        """The model on the test split."""
        self.parallel.agree()
        everything = self.test.epoch(0)
        return evaluate(self.model, everything, self.trainer.loss_fn, autocast=self.trainer.autocast(), gather=added)


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


def chance(dataset: Dataset, loss_fn: LossFunction) -> float:
    """What guessing costs on the first training samples."""
    targets = dataset.train.targets[:GUESSED]
    return guessing(loss_fn, torch.zeros(len(targets), dataset.classes), [targets])


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
        rank=rank(),
        world_size=world(),
    )


def alone(batches: Batches) -> Batches:
    """The whole batches of all processes."""
    return replace(batches, rank=0, world_size=1)


def _trainer(
    config: RunConfig,
    model: Chain,
    parallel: Parallel,
    dataset: Dataset,
    *,
    steps: int,
    per_epoch: int,
    compiled: bool,
) -> Trainer:
    part = config.training
    if config.data.batch_size % (part.accumulate * world()):
        each = f" by each of {world()} processes" if world() > 1 else ""
        raise UsageError(f"batch size {config.data.batch_size} cannot be cut into {part.accumulate} equal pieces{each}")
    if part.checkpoint_blocks:
        model.checkpoint_blocks = True
    kind = next(model.parameters()).device.type
    autocast: Callable[[], AbstractContextManager[object]] = (
        partial(torch.autocast, kind, dtype=torch.bfloat16) if part.precision == "bf16" else nullcontext
    )
    return Trainer(
        forward=torch.compile(parallel.forward) if compiled else parallel.forward,
        model=model,
        apart=parallel.apart,
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
    kind = SpreadProcrustes if world() > 1 else Procrustes
    return kind(model, **part, seed=config.seed).attach(trainer.optimizer)


@dataclass(frozen=True)
class Again:
    """The batches of the first epoch, as often as they are asked for."""

    batches: Batches

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        return self.batches.epoch(0)
