"""Photographs in class folders, `train/CLASS/*.JPEG` and `val/CLASS/*.JPEG`, read by worker processes.

O. Russakovsky et al., ImageNet Large Scale Visual Recognition Challenge, 2015: 1,281,167 images to train and 50,000 to
test in 1,000 classes; any tree of this form will do. Augmentation is a random resized crop and a flip, without it the
centre of the image is taken. Mean and deviation are those of ImageNet. Needs pillow (the extra `imagenet`). The
images cannot be fetched, and the digest covers the names of the files, not what is in them.
"""

import importlib.util
import os
from pathlib import Path

import numpy as np
import torch

from leadline.core.errors import UnreadableError, UsageError
from leadline.data.dataset import Dataset, digest_of
from leadline.data.place import Place, explained
from leadline.data.tree import Tree, class_names, listing

_MEAN, _STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def load(place: Place, *, size: int = 224, workers: int | None = None) -> Dataset:
    """The tree in `imagenet` of the data root, or in the root itself; images of `size` pixels a side.

    `workers` processes (by default as many as there are cores; 0: none) decode; their number changes no number.
    """
    if importlib.util.find_spec("PIL") is None:
        raise UsageError("imagenet is read with pillow, which is not installed: pip install 'leadline[imagenet]'")
    if size < 1 or (workers or 0) < 0:
        raise UsageError(f"imagenet: size must be at least 1 and workers at least 0; got {size=}, {workers=}")
    tree = _tree(place)
    classes = class_names(tree / "train")
    train, test = (listing(tree / part, classes) for part in ("train", "val"))

    def split(part: str, images: list[tuple[str, int]]) -> Tree:
        return Tree(
            folder=tree / part,
            paths=np.array([os.fsencode(path) for path, _ in images]),
            targets=torch.tensor([number for _, number in images]),
            size=size,
            workers=_cores() if workers is None else workers,
            known=(_MEAN, _STD),
        )

    digest = digest_of("imagenet", size=size, images=[train, test])
    return Dataset("imagenet", len(classes), split("train", train), split("val", test), digest)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _tree(place: Place) -> Path:
    with explained("read", place.root):
        for folder in (place.root / "imagenet", place.root):
            if (folder / "train").is_dir() and (folder / "val").is_dir():
                return folder
    raise UnreadableError(
        f"imagenet: expected folders train and val, with a folder for each class, in {place.root / 'imagenet'} "
        f"(set LEADLINE_DATA to the folder that has them; ImageNet itself is to be had from https://image-net.org)"
    )
