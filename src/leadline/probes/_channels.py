"""Which axis of a boundary counts channels: 1 where convolutions work, the last where linear maps do."""

from collections.abc import Sequence

from torch import Tensor

from leadline.core.errors import UsageError
from leadline.probes import Moment
from leadline.probes._layers import layers


def channel_dims(at: Moment) -> list[int]:
    """For every boundary, judged by the widths of the block's own layers: the first one's for x_0, else the last's."""
    blocks = at.anatomy.blocks
    named = layers(at.model)
    weights = [[layer.weight for layer in named if _inside(layer.name, block.modules)] for block in blocks]
    ends = [(block.in_shape, found[:1]) for block, found in zip(blocks[:1], weights, strict=False)]
    ends += [(block.out_shape, found[-1:]) for block, found in zip(blocks, weights, strict=True)]
    return [channel_dim(shape, found) for shape, found in ends]


def channel_dim(shape: Sequence[int], near: Sequence[Tensor]) -> int:
    """The axis, 1 or the last, whose size is a width of the nearest weight.

    >>> import torch
    >>> channel_dim((2, 8, 8, 40), [torch.ones(40, 160)])
    3
    """
    last = len(shape) - 1
    if last < 2:
        return last
    widths = {size for weight in near for size in weight.shape[:2]}
    fits = [axis for axis in (1, last) if shape[axis] in widths]
    if len(fits) == 1:
        return fits[0]
    return 1 if last > 2 or any(weight.ndim > 2 for weight in near) else last


def batch_first(tensor: Tensor, channel: int, count: int) -> tuple[Tensor, int]:
    """The tensor with the axis of the batch's size in front, and where its channels are then."""
    axis = next((axis for axis, size in enumerate(tensor.shape) if size == count), None)
    if axis is None or tensor.ndim < 2:
        raise UsageError(f"no axis of shape {tuple(tensor.shape)} counts the {count} samples")
    channel = tensor.ndim - 1 if channel == axis else channel
    return tensor.movedim(axis, 0), channel + (channel < axis)


def _inside(layer: str, modules: Sequence[str]) -> bool:
    return any(layer == module or layer.startswith(f"{module}.") or not module for module in modules)
