"""What is trained on what, from the command line: options and parts that check and depth-check have in common."""

import contextlib
import importlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro
from tyro.conf import UseAppendAction

from leadline.cli._timeout import time_limit
from leadline.core.errors import LeadlineError, UnreadableError, UsageError

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

    from leadline.data import Dataset


@dataclass(frozen=True, kw_only=True)
class Trial:
    """The options of a trial."""

    arg: Annotated[tuple[str, ...], UseAppendAction] = ()
    """key=value for the model or the factory, repeatable"""
    data: str | None = None
    """a name from `leadline list datasets`; random inputs and labels when not given"""
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
    seed: int = 0
    """decides initial weights and random inputs"""
    threads: int = 1
    """torch threads"""
    thresholds: Path | None = None
    """a YAML file that replaces some of the limits the rules go by"""
    import_timeout: float = 60.0
    """seconds that importing and building the model may take; 0 for any"""
    out: Annotated[Path | None, tyro.conf.arg(aliases=("-o",))] = None
    """a folder to keep what was measured in, with a page that shows it"""
    json: bool = False
    """the result as JSON"""


def dataset(options: Trial) -> "Dataset | None":
    """The data asked for, if any were."""
    if options.data is None:
        return None
    from leadline.data import load

    return load(options.data)


def build(options: Trial, name: str, arguments: Mapping[str, Any], data: "Dataset | None" = None) -> "nn.Module":
    """The model of that name, or what module:factory gives, from the seed asked for."""
    import torch

    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    return create(options, name, arguments, data)


def create(options: Trial, name: str, arguments: Mapping[str, Any], data: "Dataset | None" = None) -> "nn.Module":
    """The same from the random state there is; what the factory prints goes to stderr."""
    if ":" in name:
        with time_limit(options.import_timeout, what=name, option="--import-timeout"):
            return _made(name, arguments)
    if "/" in name:
        raise UnreadableError(f"there is no folder {name}; expected a run folder, a model's name or module:factory")
    if data is None:
        from leadline import models

        return models.create(name, **arguments)
    from leadline.core.config import RunConfig
    from leadline.execute.run_one import build_model

    return build_model(RunConfig.parse({"model": {"name": name, "args": dict(arguments)}}), data)


def _made(place: str, arguments: Mapping[str, Any]) -> "nn.Module":
    from torch import nn

    module, _, name = place.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        with contextlib.redirect_stdout(sys.stderr):
            built = getattr(importlib.import_module(module), name)(**arguments)
    except LeadlineError:
        raise
    except (Exception, SystemExit) as error:  # whatever somebody's factory raises
        raise UsageError(f"{place} could not be built: {_why(error)}{_line(error)}") from error
    if not isinstance(built, nn.Module):
        raise UsageError(f"{place} gave a {type(built).__name__}, expected a torch.nn.Module")
    return built


def _why(error: BaseException) -> str:
    said = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _line(error: BaseException) -> str:
    """Where in somebody's own code it was raised; nothing if it never came there."""
    trace, found = error.__traceback__, ""
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if name != __file__ and not name.startswith("<") and "importlib" not in name:
            found = f" ({name}, line {trace.tb_lineno}, in {trace.tb_frame.f_code.co_name})"
        trace = trace.tb_next
    return found


def optimizer(options: Trial, model: "nn.Module") -> "Optimizer | None":
    """As asked for; none for a model that has nothing to train, of which others complain."""
    from leadline.core import config
    from leadline.train import optim

    rate = options.lr if options.lr is not None else 0.1 if options.optimizer == "sgd" else 1e-3
    values = {"name": options.optimizer, "lr": rate, "weight_decay": options.weight_decay, "momentum": options.momentum}
    if not any(parameter.requires_grad for parameter in model.parameters()):
        return None
    return optim.build(config.RunConfig.parse({"model": "any", "optimizer": values}).optimizer, model)


def loss(options: Trial) -> Callable[[Any, Any], Any]:
    from torch.nn import functional

    losses: dict[str, Callable[[Any, Any], Any]] = {
        "cross-entropy": lambda output, targets: functional.cross_entropy(output, targets),
        "mse": lambda output, targets: functional.mse_loss(output, targets),
    }
    return losses[options.loss]


def batches(options: Trial, model: "nn.Module", data: "Dataset | None") -> list[Any]:
    """As many as there are steps; without data a single one, which a network that trains learns by heart."""
    if options.batch_size < 1 or options.classes < 1:
        raise UsageError(f"--batch-size {options.batch_size}, --classes {options.classes}: expected at least 1 of each")
    return _random(options, model) if data is None else _of(data, options)


def _of(data: "Dataset", options: Trial) -> list[Any]:
    from leadline.data import Batches

    normalise = (data.mean, data.std) if len(data.shape) == 3 else None
    cut = Batches(data.train, batch_size=options.batch_size, seed=options.seed, normalise=normalise)
    found = [batch for epoch in range(1 + options.steps // max(1, len(cut))) for batch in cut.epoch(epoch)]
    return found[: options.steps]


def _random(options: Trial, model: "nn.Module") -> list[Any]:
    import torch

    shape = _shape(options.input) if options.input else tuple(getattr(model, "input_shape", ()))
    if not shape:
        raise UsageError("what does the model take? give --data NAME or --input 3x32x32")
    inputs = torch.randn(options.batch_size, *shape)
    if options.loss == "mse":
        from leadline.execute.fault import located

        with located(model, inputs), torch.no_grad():
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
