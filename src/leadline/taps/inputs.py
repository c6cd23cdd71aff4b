"""What a batch means to a model: which eager module is called, with which arguments, and what the targets are."""

import inspect
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from leadline.core.errors import UsageError


@dataclass(frozen=True)
class Inputs:
    """`model(*args, **kwargs)`, and the targets if the batch had any."""

    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    targets: Any = None

    def call(self, model: nn.Module) -> Any:
        return model(*self.args, **self.kwargs)


def eager(model: nn.Module, *, warn: bool = True) -> nn.Module:
    """The module whose parts are called in Python: inside torch.compile's and data-parallel wrappers."""
    if not isinstance(model, nn.Module):
        raise UsageError(f"expected a torch.nn.Module, got {type(model).__name__}")
    if isinstance(model, torch.jit.ScriptModule):
        raise UsageError("a scripted or traced model cannot be listened to; pass the module it was made from")
    if isinstance(model, nn.DataParallel):
        raise UsageError("nn.DataParallel copies the model at every call; pass its .module")
    inner = getattr(model, "_orig_mod", None)
    if inner is not None and warn:
        warnings.warn("this model was compiled; the eager module inside it is read instead", UserWarning, stacklevel=3)
    if inner is None and type(model).__name__ == "DistributedDataParallel":
        inner = model.module
    if isinstance(inner, nn.Module):
        return eager(inner, warn=warn)
    if lazy := [name for name, parameter in model.named_parameters() if is_lazy(parameter)]:
        raise UsageError(f"{lazy[0]} has no shape yet (a lazy module); call the model once on a batch before")
    return model


def _positional(model: nn.Module) -> list[str]:
    """The positional inputs `forward` cannot do without."""
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(model.forward).parameters.values()
    return [p.name for p in parameters if p.kind in positional and p.default is inspect.Parameter.empty]


def understand(model: nn.Module, batch: Any) -> Inputs:
    """Read a batch: a tensor, a dict of keyword inputs, a tuple of positional inputs, or (inputs, targets).

    A tuple is positional inputs when `forward` needs that many; with one item more the last one is the targets.
    `((a, b), targets)` and `({"a": a}, targets)` always mean what they say.

    >>> from torch import ones
    >>> understand(nn.Linear(2, 2), (ones(1, 2), ones(1))).targets
    tensor([1.])
    """
    if isinstance(batch, Tensor):
        return Inputs((batch,))
    if isinstance(batch, Mapping):
        return Inputs(kwargs=dict(batch))
    if not isinstance(batch, (tuple, list)) or not batch:
        raise UsageError(f"a batch is a tensor, a dict, a tuple of inputs, or (inputs, targets); got {_kind(batch)}")
    if len(batch) == 2 and isinstance(batch[0], (tuple, list, Mapping)):
        inputs = Inputs(kwargs=dict(batch[0])) if isinstance(batch[0], Mapping) else Inputs(tuple(batch[0]))
        return Inputs(inputs.args, inputs.kwargs, batch[1])
    return _split(tuple(batch), _positional(model))


def _split(batch: tuple[Any, ...], needed: list[str]) -> Inputs:
    count = max(1, len(needed))
    if len(batch) == count:
        return Inputs(batch)
    if len(batch) == count + 1:
        return Inputs(batch[:-1], targets=batch[-1])
    raise UsageError(
        f"forward takes {count} input{'s'[: count > 1]} ({', '.join(needed) or 'any'}), the batch has {len(batch)} "
        "items; pass (inputs, targets) with inputs a tensor, a tuple or a dict"
    )


def _kind(value: Any) -> str:
    return f"an empty {type(value).__name__}" if isinstance(value, (tuple, list)) else type(value).__name__
