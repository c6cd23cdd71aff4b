"""The convolutions that change the shape of what flows through a model, found from its modules alone.

A convolution changes the shape if it changes the number of channels or has a stride. Left out are those of a residual
branch: a chain of convolutions, first in its block, that comes back to the shape it started from (a bottleneck, a
squeeze-and-excitation) or that another convolution of the block bridges in one go (the projection shortcut, which then
is the transition, as in Zaeemzadeh et al., Fig. 1c). A block is any module that is not a plain container.
"""

from collections.abc import Iterator, Sequence
from math import prod
from typing import TypeAlias

from torch import nn

Conv: TypeAlias = nn.Conv1d | nn.Conv2d | nn.Conv3d

CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
CONTAINERS = (nn.Sequential, nn.ModuleList, nn.ModuleDict)


def transitions(model: nn.Module) -> dict[str, Conv]:
    """Shape-changing convolutions by name, in the order of the modules; empty if there are none.

    >>> block = nn.Sequential(nn.Conv2d(64, 64, 3), nn.ReLU(), nn.Conv2d(64, 128, 1, stride=2))
    >>> list(transitions(block))
    ['2']
    """
    in_branches = {id(conv) for block in _blocks(model) for conv in _branch(_convolutions(block))}
    found = {name: conv for name, conv in model.named_modules() if isinstance(conv, CONVOLUTIONS)}
    return {name: conv for name, conv in found.items() if changes_shape(conv) and id(conv) not in in_branches}


def changes_shape(conv: Conv) -> bool:
    return conv.in_channels != conv.out_channels or prod(conv.stride) > 1


def _blocks(model: nn.Module) -> Iterator[nn.Module]:
    return (block for block in model.modules() if block is not model and not isinstance(block, CONTAINERS))


def _convolutions(block: nn.Module) -> list[Conv]:
    return [conv for conv in block.modules() if isinstance(conv, CONVOLUTIONS)]


def _branch(convs: Sequence[Conv]) -> Sequence[Conv]:
    """The longest chain from the first convolution (or the second, where the skip comes first) that is bridged."""
    for start in (0, 1):
        chain = convs[start : start + _chained(convs[start:])]
        for length in range(len(chain), 1, -1):
            shape = _shape(chain[:length])
            beside = [*convs[:start], *convs[start + length :]]
            if (shape[0] == shape[1] and shape[2] == 1) or any(_shape([other]) == shape for other in beside):
                return chain[:length]
    return ()


def _chained(convs: Sequence[Conv]) -> int:
    for place in range(1, len(convs)):
        if convs[place].in_channels != convs[place - 1].out_channels:
            return place
    return len(convs)


def _shape(chain: Sequence[Conv]) -> tuple[int, int, int]:
    """Channels in, channels out, stride."""
    return chain[0].in_channels, chain[-1].out_channels, prod(prod(conv.stride) for conv in chain)
