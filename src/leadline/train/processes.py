"""What changes when a model is trained by several processes: who writes, what all of them know, what is refused."""

import sys
from typing import TypeVar

from torch import distributed, nn

from leadline.core.errors import UsageError

T = TypeVar("T")


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
