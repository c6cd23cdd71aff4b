"""Train a model and record the run; the same command on an unfinished run goes on with it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from rich.console import Console
from rich.table import Table as RichTable
from tyro.conf import Positional, UseAppendAction

from leadline.cli._progress import Bar
from leadline.cli._stop import stop_signal
from leadline.cli._words import pairs, parse, print_json
from leadline.core import presets
from leadline.core.config import RunConfig
from leadline.core.errors import UnreadableError, UsageError


@dataclass(frozen=True, kw_only=True)
class Train:
    """Train a model and record the run. The same command on an unfinished run resumes it, bit for bit.

    Every field of a configuration can be set: the usual ones have options, all others go by
    --set PART.FIELD=VALUE, for example --set optimizer.nesterov=true.
    """

    model: Positional[str]
    """a name from `leadline list models`"""
    arg: Annotated[tuple[str, ...], UseAppendAction] = ()
    """key=value for the model, repeatable: --arg widths=8,16,32"""
    data: str | None = None
    """a name from `leadline list datasets`; digits when not given"""
    data_arg: Annotated[tuple[str, ...], UseAppendAction] = ()
    """key=value for the data set, repeatable: --data-arg whiten=10"""
    preset: str | None = None
    """where to start from: the training of a paper, or of nothing in particular"""
    config: Path | None = None
    """a JSON file with a configuration, as run.json has it; options override it"""
    epochs: int | None = None
    """passes over the data; one when neither epochs nor steps are given"""
    steps: int | None = None
    """optimiser steps, instead of epochs"""
    batch_size: int | None = None
    """samples in a step"""
    augment: Literal["none", "crop-flip"] | None = None
    """random crop out of a padded image, and flip"""
    optimizer: Literal["sgd", "adam", "adamw"] | None = None
    """how to step"""
    lr: float | None = None
    """learning rate"""
    momentum: float | None = None
    """of sgd"""
    weight_decay: float | None = None
    """on all parameters, unless optimizer.decay_norms is false"""
    schedule: Literal["constant", "step", "cosine", "one-cycle"] | None = None
    """learning rate over time"""
    precision: Literal["fp32", "bf16", "fp64"] | None = None
    """bf16 is autocast with channels_last"""
    accumulate: int | None = None
    """cut each batch into so many pieces, one after another"""
    clip: float | None = None
    """largest gradient norm"""
    local_norm: int | None = None
    """shares of each batch over which batch norm takes its statistics: 1 is the whole batch of all processes, as many
    as processes is each its own; whichever it is, one process gives the same numbers as several"""
    checkpoint_blocks: bool = False
    """keep only the boundaries between blocks in memory and recompute the rest"""
    probes: str | None = None
    """what to read on the way: light, standard, full, or names from `leadline list probes` with their schedules:
    light,weight_condition@every:50"""
    seed: int | None = None
    """decides initial weights, order and augmentation"""
    set: Annotated[tuple[str, ...], UseAppendAction] = ()
    """PART.FIELD=VALUE, repeatable"""
    out: Path = Path("runs")
    """the folder of the run folders"""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1, mps"""
    compile: bool = False
    """train through torch.compile"""
    threads: int = 1
    """torch threads; two spin against each other on a busy machine"""
    checkpoint_seconds: float = 20.0
    """longest time between two checkpoints"""
    parallel: Literal["ddp", "fsdp"] = "ddp"
    """what each process under torchrun has of the model: a copy (ddp) or a shard of every parameter (fsdp)"""
    sink: Annotated[tuple[str, ...], UseAppendAction] = ()
    """a tracker that gets aggregated readings too, repeatable: tensorboard, wandb, mlflow"""
    json: bool = False
    """the result as JSON"""


PLACES = {
    "epochs": ("training", "epochs"),
    "steps": ("training", "steps"),
    "batch_size": ("data", "batch_size"),
    "augment": ("data", "augment"),
    "optimizer": ("optimizer", "name"),
    "lr": ("optimizer", "lr"),
    "momentum": ("optimizer", "momentum"),
    "weight_decay": ("optimizer", "weight_decay"),
    "schedule": ("schedule", "name"),
    "precision": ("training", "precision"),
    "accumulate": ("training", "accumulate"),
    "clip": ("training", "clip"),
    "local_norm": ("training", "local_norm"),
}


def run(words: Sequence[str]) -> int:
    options = parse(Train, words, verb="train")
    config = resolve(options)
    if options.threads < 1:
        raise UsageError(f"--threads {options.threads}: expected at least 1")
    from leadline.execute.settings import Diverged, Stopped
    from leadline.execute.together import joined
    from leadline.train.processes import Told, rank

    with joined(options.device):
        try:
            result = trained(config, options)
        except (Told, Stopped, Diverged) as error:
            # what all of them know is said once
            if rank() == 0:
                raise
            return error.exit_code
        if rank():
            return 0
        print_json(result) if options.json else show(result)
    return 0


def trained(config: RunConfig, options: Train) -> dict[str, Any]:
    """What came of the run; the first process shows how far it is."""
    from leadline.execute.run_one import Settings, Silent, run_one
    from leadline.train.processes import rank

    with stop_signal() as stopped:
        settings = Settings(
            device=options.device,
            compile=options.compile,
            threads=options.threads,
            checkpoint_seconds=options.checkpoint_seconds,
            sinks=options.sink,
            parallel=options.parallel,
            stop=stopped,
        )
        if rank():
            return run_one(config, options.out, settings=settings, progress=Silent()).to_json()
        with Bar() as bar:
            return run_one(config, options.out, settings=settings, progress=bar).to_json()


def resolve(options: Train) -> RunConfig:
    """Preset, then file, then options: the later one wins, part by part."""
    values = merge(presets.named(options.preset) if options.preset else {}, _file(options.config))
    values["model"] = {"name": options.model, "args": pairs(options.arg, option="--arg")}
    if options.data is not None or options.data_arg:
        given = {"name": options.data} if options.data else {}
        values = merge(values, {"data": {**given, "args": pairs(options.data_arg, option="--data-arg")}})
    if options.epochs is not None or options.steps is not None:
        values = merge(values, {"training": {"epochs": None, "steps": None}})
    for name, (part, field) in PLACES.items():
        if (value := getattr(options, name)) is not None:
            values = merge(values, {part: {field: value}})
    if options.checkpoint_blocks:
        values = merge(values, {"training": {"checkpoint_blocks": True}})
    if options.probes is not None:
        values["probes"] = spelled(options.probes)
    if options.seed is not None:
        values["seed"] = options.seed
    for key, value in pairs(options.set, option="--set").items():
        part, dot, field = key.partition(".")
        values = merge(values, {part: {field: value}} if dot else {part: value})
    return RunConfig.parse(values)


def spelled(words: str) -> list[str]:
    """The probes that comma-separated words mean, each with its schedule, so that the identity of the run has them."""
    from leadline.train.presets import choose, spell

    return list(spell(choose(word for word in words.split(",") if word)))


def merge(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """The two configurations as one; where both say something the second one wins.

    >>> merge({"a": {"x": 1, "y": 2}}, {"a": {"y": 3}})
    {'a': {'x': 1, 'y': 3}}
    """
    merged = dict(below)
    for key, value in above.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = merge(merged[key], value) if both else value
    return merged


def _file(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        found = json.loads(path.read_bytes())
    except OSError as error:
        raise UnreadableError(f"cannot read the configuration {path}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise UnreadableError(f"the configuration {path} is not JSON") from None
    config = found.get("config", found) if isinstance(found, dict) else found
    if not isinstance(config, dict):
        raise UnreadableError(f"the configuration {path} holds a {type(config).__name__}, expected an object")
    return config


def show(result: dict[str, Any]) -> None:
    """The result as a small table."""
    table = RichTable(box=None, pad_edge=False)
    for name in ("", "step", "test loss", "test accuracy"):
        table.add_column(name, justify="right" if name else "left")
    for name in ("last", "best"):
        score = result[name]
        accuracy = score["accuracy"]
        shown = "" if accuracy is None else f"{100 * accuracy:.2f} %"
        table.add_row(name, str(int(score.get("step", result["steps"]))), f"{score['loss']:.4f}", shown)
    console = Console(highlight=False, soft_wrap=True)
    console.print(result["run"], markup=False)
    console.print(table)
