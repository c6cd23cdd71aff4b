"""The IDX files of the MNIST family: a header of sizes, then unsigned bytes."""

import struct

import numpy as np
import torch
from torch import Tensor

from leadline.core.errors import UnreadableError

_UNSIGNED_BYTE = 8


def parse(content: bytes, *, name: str) -> Tensor:
    """The tensor in the bytes of one file: 0, 0, type, number of dimensions, the big-endian sizes, the values."""
    dimensions = content[3] if len(content) > 3 else 0
    start = 4 + 4 * dimensions
    if content[:3] != bytes((0, 0, _UNSIGNED_BYTE)) or len(content) < start:
        raise UnreadableError(f"{name} is not an IDX file of bytes: it begins with {content[:4].hex()}")
    sizes = struct.unpack(f">{dimensions}I", content[4:start])
    expected = start + int(np.prod(sizes))
    if len(content) != expected:
        raise UnreadableError(f"{name} holds {len(content)} bytes; its header {sizes} asks for {expected}")
    return torch.from_numpy(np.frombuffer(content, dtype=np.uint8, offset=start).reshape(sizes).copy())
