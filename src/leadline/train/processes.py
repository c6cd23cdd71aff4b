"""What changes when a model is trained by several processes: who writes, what all of them know, what is refused."""

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor, distributed, nn

from leadline.core.errors import LeadlineError, UsageError

T = TypeVar("T")


class Told(LeadlineError):
    """What ended the first process, which says it itself; the others end in the same way and say nothing."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def world() -> int:
    """How many processes train together."""
    return distributed.get_world_size() if _together() else 1


def rank() -> int:
    """Which of them this is; 0 writes."""
    return distributed.get_rank() if _together() else 0


def everyones(mine: T) -> list[T]:
    """What every process passes here, in the order of their ranks; all have to call it."""
    if world() == 1:
        return [mine]
    theirs: list[T | None] = [None] * world()
    distributed.all_gather_object(theirs, mine)
    return [each for each in theirs if each is not None]


def first_finds(what: Callable[[], T]) -> T:
    """What the first process finds, and only it looks; all have to call it. Its error ends all of them."""
    if world() == 1:
        return what()
    box: list[Any] = [None, None]
    trouble: LeadlineError | None = None
    if rank() == 0:
        try:
            box[0] = what()
        except LeadlineError as error:
            trouble, box[1] = error, (str(error), error.exit_code)
    distributed.broadcast_object_list(box, src=0)
    if trouble:
        raise trouble
    if box[1]:
        raise Told(*box[1])
    found: T = box[0]
    return found


def anyones(*mine: bool) -> tuple[bool, ...]:
    """Of each of these, whether any process says so; all have to call it."""
    if world() == 1:
        return mine
    said = torch.tensor(mine, dtype=torch.uint8)
    distributed.all_reduce(said, op=distributed.ReduceOp.MAX)
    return tuple(map(bool, said.tolist()))


def added(mine: Tensor) -> Tensor:
    """The sum over the processes, the same on each."""
    if world() == 1:
        return mine
    total = mine.detach().clone()
    distributed.all_reduce(total)
    return total


def averaged(mine: Tensor) -> Tensor:
    """The mean over the processes, summed in double precision."""
    return mine if world() == 1 else (added(mine.double()) / world()).to(mine.dtype)


def whole(tensor: Tensor) -> Tensor:
    """All of a tensor of which each process may hold only a shard; all have to call it."""
    if hasattr(tensor, "full_tensor"):
        full: Tensor = tensor.full_tensor()
        return full
    return tensor


@torch.no_grad()
def fill(tensor: Tensor, value: Tensor) -> None:
    """Writes all of `value`, which every process has, or of a sharded tensor the part that is here."""
    if hasattr(tensor, "full_tensor"):
        from torch.distributed.tensor import DTensor, distribute_tensor

        assert isinstance(tensor, DTensor)
        there = value.to(tensor.device, tensor.dtype)
        tensor.copy_(distribute_tensor(there, tensor.device_mesh, tensor.placements, src_data_rank=None))
    else:
        tensor.copy_(value)


def refuse_shards(model: nn.Module) -> None:
    """A model of which this process holds only parts would give readings of those parts."""
    tensors = sys.modules.get("torch.distributed.tensor")
    names = [name for name, p in model.named_parameters() if tensors is not None and isinstance(p, tensors.DTensor)]
    names += [name for name, m in model.named_modules() if type(m).__name__ == "FullyShardedDataParallel"]
    if names:
        raise UsageError(
            f"{names[0] or 'the model'} is sharded over processes (FSDP or DTensor): readings would be of a shard; "
            "use DistributedDataParallel, or measure the model before it is sharded"
        )


def _together() -> bool:
    return distributed.is_available() and distributed.is_initialized()
