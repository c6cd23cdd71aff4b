"""1,797 handwritten digits of 8x8 pixels, shipped with the package: ten classes, nothing to download.

The test set of E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning Repository,
1998, https://doi.org/10.24432/C50P49 (CC BY 4.0). Sorted by class, in the original order within each class, every
fifth image from the first on is a test image (360), the others train (1,437).
"""

import gzip
import hashlib
from pathlib import Path

import torch
from torch import Tensor

from leadline.data.dataset import Dataset, InMemory, digest_of
from leadline.data.idx import parse
from leadline.data.place import Place

_FILES = ("digits-images-idx3-ubyte.gz", "digits-labels-idx1-ubyte.gz")


def load(_place: Place) -> Dataset:
    """The digits, their 17 levels of grey spread over 0 to 255."""
    contents = [gzip.decompress(Path(__file__).with_name(name).read_bytes()) for name in _FILES]
    images, labels = (parse(content, name=name) for content, name in zip(contents, _FILES, strict=True))
    inputs = (images[:, None].double() * (255 / 16)).round().to(torch.uint8)
    test = _every_fifth(labels)
    train, held_out = (InMemory(inputs[rows], labels[rows].long()) for rows in (~test, test))
    return Dataset(
        "digits", 10, train, held_out, digest_of("digits", sha256=hashlib.sha256(b"".join(contents)).hexdigest())
    )


def _every_fifth(labels: Tensor) -> Tensor:
    chosen = torch.zeros(len(labels), dtype=torch.bool)
    chosen[labels.argsort(stable=True)[::5]] = True
    return chosen
