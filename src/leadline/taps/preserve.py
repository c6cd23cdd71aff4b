"""Leave a model exactly as found: modes, buffers, gradients, requires_grad and random states, bit for bit."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn


@contextmanager
def preserved(model: nn.Module) -> Iterator[None]:
    """What `model` goes through inside - forward, backward, `train()` - is undone; only do not write its parameters.

    Buffers are stood in for by copies, so the real ones are not even touched: a backward pass the caller has pending
    still finds the versions it saved. Inside, every `.grad` is None.
    """
    modes = [(module, module.training) for module in model.modules()]
    parameters = [(parameter, parameter.grad, parameter.requires_grad) for parameter in model.parameters()]
    buffers = [(module, dict(module._buffers)) for module in model.modules() if module._buffers]
    with _random_states(_devices(model)):
        try:
            _stand_in(buffers)
            for parameter, _, _ in parameters:
                parameter.grad = None
            yield
        finally:
            for module, mode in modes:
                module.training = mode
            for module, found in buffers:
                module._buffers.update(found)
            for parameter, gradient, required in parameters:
                parameter.requires_grad_(required)
                parameter.grad = gradient


def _stand_in(buffers: list[tuple[nn.Module, dict[str, Tensor | None]]]) -> None:
    copies: dict[int, Tensor] = {}  # a buffer registered twice stays one tensor
    for module, found in buffers:
        for name, buffer in found.items():
            if buffer is not None:
                module._buffers[name] = copies.setdefault(id(buffer), buffer.detach().clone())


def _devices(model: nn.Module) -> list[int]:
    tensors = [*model.parameters(), *model.buffers()]
    return sorted({tensor.device.index or 0 for tensor in tensors if tensor.device.type == "cuda"})


@contextmanager
def _random_states(devices: list[int]) -> Iterator[None]:
    python, legacy = random.getstate(), np.random.get_state()  # noqa: NPY002 - models draw from the global one
    try:
        with torch.random.fork_rng(devices=devices):
            yield
    finally:
        random.setstate(python)
        np.random.set_state(legacy)  # noqa: NPY002
