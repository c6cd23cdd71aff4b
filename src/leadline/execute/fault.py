"""Says in one line what a model or its loss could not do with a batch, and where."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from leadline.core.errors import LeadlineError, UsageError
from leadline.taps.inputs import understand
from leadline.taps.preserve import preserved

IGNORED = -100
"""The label that cross-entropy leaves out."""


@contextmanager
def located(model: nn.Module, batch: Any) -> Iterator[None]:
    """What the model or its loss raises inside becomes one line that names the layer, or what the loss was given."""
    try:
        yield
    except Exception as error:  # whatever somebody's model raises
        cause = error.__cause__ if isinstance(error, UsageError) else error
        if cause is None or isinstance(cause, LeadlineError):
            raise
        raise UsageError(said(model, batch, cause)) from cause


def said(model: nn.Module, batch: Any, error: BaseException) -> str:
    """The line for this error."""
    reason = (str(error).strip().splitlines() or [""])[0]
    why = f"{type(error).__name__}: {reason}"
    layer, inputs = _layer(model, error), understand(model, batch)
    if layer is not None:
        given = _shapes((*inputs.args, *inputs.kwargs.values()))
        return f"the model failed on an input of {given}, in {layer}: {why}"
    try:
        with preserved(model), torch.no_grad():
            output = inputs.call(model)
    except Exception:  # it failed otherwise than before; what was seen first is said
        return f"the model failed on this batch: {why}"
    told = _beyond(output, inputs.targets)
    return told or f"the loss failed on an output of {_shapes(output)} and targets of {_shapes(inputs.targets)}: {why}"


def _layer(model: nn.Module, error: BaseException) -> str | None:
    """The innermost part of the model that the error went through."""
    names = {id(module): name for name, module in model.named_modules()}
    trace, found = error.__traceback__, None
    while trace is not None:
        module = trace.tb_frame.f_locals.get("self")
        if isinstance(module, nn.Module) and id(module) in names:
            found = f"{names[id(module)] or 'its own forward'} ({type(module).__name__})"
        trace = trace.tb_next
    return found


def _beyond(output: Any, targets: Any) -> str:
    """Labels that the output has no class for, in words."""
    if not (isinstance(output, Tensor) and isinstance(targets, Tensor)) or targets.is_floating_point():
        return ""
    meant = targets[targets != IGNORED]
    if output.ndim < 2 or not meant.numel() or targets.shape != output.shape[:1] + output.shape[2:]:
        return ""
    low, high, classes = int(meant.min()), int(meant.max()), output.shape[1]
    if low >= 0 and high < classes:
        return ""
    return f"labels are out of range: they go from {low} to {high}, the output has the classes 0 to {classes - 1}"


def _shapes(value: Any) -> str:
    found = [leaf for leaf in tree_leaves(value) if isinstance(leaf, Tensor)]
    words = ", ".join(f"{tuple(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')}" for tensor in found)
    return f"shape {words}" if words else "no tensor"
