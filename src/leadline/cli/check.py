"""Say why a model does not train, and what to change: seconds, nothing of it is changed."""

import importlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from rich.console import Console
from tyro.conf import Positional, UseAppendAction

from leadline.cli._words import pairs, parse, print_json
from leadline.core.errors import LeadlineError, UsageError

if TYPE_CHECKING:
    from torch import nn

    from leadline.diagnosis.finding import Diagnosis

STYLES = {"healthy": "bold green", "trains slowly": "bold yellow", "will not train": "bold red", "undecided": "bold"}


@dataclass(frozen=True, kw_only=True)
class Check:
    """Say why a model does not train, and what to change.

    MODEL is a name from `leadline list models`, module:factory (imported from here or from what is installed), or a
    run folder, which is judged by its readings. Without --data the model is shown random inputs and labels.
    Ends with 0 if it is healthy, 1 with findings, 2 for usage, 3 for what cannot be read.
    """

    model: Positional[str]
    """a name, module:factory, or a run folder"""
    arg: Annotated[tuple[str, ...], UseAppendAction] = ()
    """key=value for the model or the factory, repeatable"""
    data: str | None = None
    """a name from `leadline list datasets`"""
    input: str | None = None
    """the shape of one input, as in 3x32x32, where no data are given"""
    classes: int = 10
    """how many classes the random labels have"""
    batch_size: int = 32
    """samples in a batch"""
    loss: Literal["cross-entropy", "mse"] = "cross-entropy"
    """what is minimised"""
    optimizer: Literal["sgd", "adam", "adamw"] = "adam"
    """how to step"""
    lr: float | None = None
    """learning rate; 0.1 for sgd and 0.001 for the others when not given"""
    momentum: float = 0.9
    """of sgd"""
    weight_decay: float = 0.0
    """on all parameters"""
    steps: int = 60
    """most steps of each rehearsal"""
    budget: float = 50.0
    """seconds for everything"""
    select: Annotated[tuple[str, ...], UseAppendAction] = ()
    """only findings with these ids, or ids that begin so"""
    ignore: Annotated[tuple[str, ...], UseAppendAction] = ()
    """all findings but those"""
    thresholds: Path | None = None
    """a YAML file that replaces some of the limits the rules go by"""
    seed: int = 0
    """decides initial weights and random inputs"""
    threads: int = 1
    """torch threads"""
    json: bool = False
    """the result as JSON"""


def run(words: Sequence[str]) -> int:
    options = parse(Check, words, verb="check")
    found = _of_run(options) if Path(options.model).is_dir() else _of_model(options)
    if options.json:
        print_json(_plain(found.to_json()))
    else:
        show(found)
    return found.exit_code


def show(found: "Diagnosis") -> None:
    """The diagnosis as text, its verdict coloured on a terminal."""
    console = Console(highlight=False, soft_wrap=True)
    first, *others = str(found).splitlines()
    console.print(first, style=STYLES[found.verdict], markup=False)
    for line in others:
        console.print(line, style="bold" if line.startswith("LL") else None, markup=False)


def _plain(value: Any) -> Any:
    """JSON knows neither infinity nor tuples."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, float) and value - value != 0 else value


def _of_run(options: Check) -> "Diagnosis":
    from leadline.execute.check import check_run
    from leadline.store.reader import read

    found = read(Path(options.model))
    return check_run(found, select=options.select, ignore=options.ignore, thresholds=options.thresholds)


def _of_model(options: Check) -> "Diagnosis":
    import torch

    from leadline.core import config
    from leadline.execute.check import check
    from leadline.train import optim

    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    model = _model(options)
    batches = _data(options) if options.data else _random(options, model)
    rate = options.lr if options.lr is not None else 0.1 if options.optimizer == "sgd" else 1e-3
    values = {"name": options.optimizer, "lr": rate, "weight_decay": options.weight_decay, "momentum": options.momentum}
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return check(
        model,
        batches[0],
        _loss(options.loss),
        optim.build(config.Optimizer(**values), model) if parameters else None,
        batches=batches[1:],
        steps=options.steps,
        budget=options.budget,
        select=options.select,
        ignore=options.ignore,
        thresholds=options.thresholds,
    )


def _loss(name: str) -> Callable[[Any, Any], Any]:
    from torch.nn import functional

    losses: dict[str, Callable[[Any, Any], Any]] = {
        "cross-entropy": lambda output, targets: functional.cross_entropy(output, targets),
        "mse": lambda output, targets: functional.mse_loss(output, targets),
    }
    return losses[name]


def _model(options: Check) -> "nn.Module":
    arguments = pairs(options.arg, option="--arg")
    if ":" not in options.model:
        from leadline import models

        return models.create(options.model, **arguments)
    from torch import nn

    module, _, name = options.model.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        built = getattr(importlib.import_module(module), name)(**arguments)
    except LeadlineError:
        raise
    except Exception as error:  # whatever somebody's factory raises
        reason = (str(error).strip().splitlines() or [""])[0]
        raise UsageError(f"{options.model} could not be built: {type(error).__name__}: {reason}") from error
    if not isinstance(built, nn.Module):
        raise UsageError(f"{options.model} gave a {type(built).__name__}, expected a torch.nn.Module")
    return built


def _data(options: Check) -> list[Any]:
    from leadline.data import Batches, load

    found = load(str(options.data))
    cut = Batches(found.train, batch_size=options.batch_size, seed=options.seed, normalise=(found.mean, found.std))
    batches = [batch for epoch in range(1 + options.steps // max(1, len(cut))) for batch in cut.epoch(epoch)]
    return batches[: options.steps]


def _random(options: Check, model: "nn.Module") -> list[Any]:
    """One batch, of which the labels say nothing: a network that trains learns it by heart."""
    import torch

    shape = _shape(options.input) if options.input else tuple(getattr(model, "input_shape", ()))
    if not shape:
        raise UsageError("what does the model take? give --data NAME or --input 3x32x32")
    inputs = torch.randn(options.batch_size, *shape)
    if options.loss == "mse":
        with torch.no_grad():
            return [(inputs, torch.randn_like(model(inputs)))]
    return [(inputs, torch.randint(options.classes, (options.batch_size,)))]


def _shape(text: str) -> tuple[int, ...]:
    try:
        shape = tuple(int(part) for part in text.split("x"))
    except ValueError:
        shape = ()
    if not shape or min(shape) < 1:
        raise UsageError(f"--input {text!r} is not a shape; expected numbers as in 3x32x32")
    return shape
