"""One model trained by several processes, each with a whole copy (ddp) or a shard of every parameter (fsdp)."""

import copy
import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor, distributed, nn

from leadline.core.errors import unknown
from leadline.train.processes import whole, world

Way = Literal["ddp", "fsdp"]
WAYS: tuple[Way, ...] = ("ddp", "fsdp")


@dataclass(frozen=True, kw_only=True)
class Parallel:
    """How the model is called in training; inside `apart` gradients are summed here and not exchanged.

    `twin` is an ordinary copy of a model whose parameters are sharded, for those who read parameters.
    """

    model: nn.Module
    forward: Callable[[Tensor], Tensor]
    apart: Callable[[], AbstractContextManager[object]] = field(default=nullcontext)
    twin: nn.Module | None = None

    @classmethod
    def of(cls, model: nn.Module, parts: list[nn.Module], way: str) -> "Parallel":
        """The model ready to be trained by all processes; of one alone it is the model itself.

        `parts` are what is sharded one by one, so that only one of them at a time is ever put together.
        """
        if way not in WAYS:
            raise unknown("way of training in parallel", way, WAYS)
        if world() == 1:
            return cls(model=model, forward=model)
        return _replicated(model) if way == "ddp" else _sharded(model, parts)

    @torch.no_grad()
    def readable(self) -> nn.Module:
        """The model with all its parameters, gradients and buffers as they are now; all processes have to ask."""
        if self.twin is None:
            return self.model
        for ours, theirs in zip(self.twin.parameters(), self.model.parameters(), strict=True):
            ours.copy_(whole(theirs))
            ours.grad = None if theirs.grad is None else whole(theirs.grad)
        for own, other in zip(self.twin.buffers(), self.model.buffers(), strict=True):
            own.copy_(other)
        return self.twin.train(self.model.training)

    def agree(self) -> None:
        """Gives every process the buffers of the first."""
        if world() > 1:
            for buffer in self.model.buffers():
                distributed.broadcast(buffer, src=0)


def _replicated(model: nn.Module) -> Parallel:
    from torch.nn.parallel import DistributedDataParallel

    # `agree` hands the buffers around; torch 2.13 has another word for the switch
    known = inspect.signature(DistributedDataParallel).parameters
    switch = "forward_sync_buffers" if "forward_sync_buffers" in known else "broadcast_buffers"
    wrapped = DistributedDataParallel(model, **{switch: False})  # type: ignore[arg-type]
    return Parallel(model=model, forward=wrapped, apart=wrapped.no_sync)


def _sharded(model: nn.Module, parts: list[nn.Module]) -> Parallel:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import FSDPModule, fully_shard

    twin = copy.deepcopy(model)
    mesh = init_device_mesh(next(model.parameters()).device.type, (world(),))
    for part in parts:
        fully_shard(part, mesh=mesh, reshard_after_forward=True)
    sharded = fully_shard(model, mesh=mesh, reshard_after_forward=True)
    assert isinstance(sharded, nn.Module) and isinstance(sharded, FSDPModule)
    return Parallel(model=sharded, forward=sharded, apart=lambda: _unexchanged(sharded), twin=twin)


@contextmanager
def _unexchanged(model: nn.Module) -> Iterator[None]:
    from torch.distributed.fsdp import FSDPModule

    assert isinstance(model, FSDPModule)
    model.set_requires_gradient_sync(False)
    try:
        yield
    finally:
        model.set_requires_gradient_sync(True)
