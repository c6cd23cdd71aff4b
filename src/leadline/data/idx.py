"""The MNIST family: IDX files, each a header of sizes followed by unsigned bytes."""

import math
import struct

import numpy as np
import torch
from torch import Tensor

from leadline.core.errors import UnreadableError
from leadline.data.dataset import Dataset, InMemory, digest_of
from leadline.data.place import Official, Place

_UNSIGNED_BYTE = 8

FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


def read(place: Place, name: str, files: tuple[Official, ...]) -> Dataset:
    """A dataset of the family from its four files in the order of FILES, zipped or not."""
    tensors = [parse(place.read(file, file.name.removesuffix(".gz")), name=file.name) for file in files]
    train, test = (InMemory(tensors[i][:, None], tensors[i + 1].long()) for i in (0, 2))
    return Dataset(name, int(train.targets.max()) + 1, train, test, digest_of(name, md5=[file.md5 for file in files]))


def parse(content: bytes, *, name: str) -> Tensor:
    """The tensor in the bytes of one file: 0, 0, type, number of dimensions, the big-endian sizes, the values."""
    dimensions = content[3] if len(content) > 3 else 0
    start = 4 + 4 * dimensions
    if content[:3] != bytes((0, 0, _UNSIGNED_BYTE)) or len(content) < start:
        raise UnreadableError(f"{name} is not an IDX file of bytes: it begins with {content[:4].hex() or 'nothing'}")
    sizes = struct.unpack(f">{dimensions}I", content[4:start])
    if len(content) != start + math.prod(sizes):
        raise UnreadableError(
            f"{name} holds {len(content) - start} values; its header {sizes} asks for {math.prod(sizes)}"
        )
    return torch.from_numpy(np.frombuffer(content, dtype=np.uint8, offset=start).reshape(sizes).copy())
