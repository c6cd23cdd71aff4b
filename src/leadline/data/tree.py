"""A tree of image files in class folders, read by worker processes, one batch each."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils import data

from leadline.core.errors import UnreadableError, UsageError
from leadline.data.augment import Augment
from leadline.data.dataset import Cut, Statistics
from leadline.data.image import DRAWS, central_view, opened, random_view
from leadline.data.place import explained

_ENDINGS = (".jpeg", ".jpg", ".png")


@dataclass(frozen=True, eq=False, kw_only=True)
class Tree:
    """A split whose images are folder/path, read when their batch is due."""

    folder: Path
    paths: np.ndarray[tuple[int], np.dtype[np.bytes_]] = field(repr=False)  # one array: worker processes share it
    targets: Tensor = field(repr=False)
    size: int
    workers: int
    known: Statistics
    pinned: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        return (3, self.size, self.size)

    @property
    def inputs(self) -> Tensor:
        raise UsageError(f"the images of {self.folder} are read batch by batch; they are not held in memory as a whole")

    def __len__(self) -> int:
        return len(self.paths)

    def statistics(self) -> Statistics:
        return self.known

    def to(self, device: torch.device, _dtype: torch.dtype) -> "Tree":
        return replace(self, pinned=device.type == "cuda")

    def batches(self, cuts: Iterable[Cut], augment: Augment) -> Iterator[tuple[Tensor, Tensor]]:
        """Workers take whole cuts in turn; what comes out, and in which order, does not depend on their number."""
        loader = data.DataLoader(
            _Reader(self, augment),
            batch_size=None,
            sampler=cuts,
            num_workers=self.workers,
            collate_fn=_as_it_is,
            generator=torch.Generator(),
            pin_memory=self.pinned,
        )
        for made in loader:
            if isinstance(made, str):
                raise UnreadableError(made)
            yield made


@dataclass(frozen=True, eq=False)
class _Reader(data.Dataset[Any]):
    tree: Tree
    augment: Augment

    def __getitem__(self, cut: Cut) -> tuple[Tensor, Tensor] | str:
        """The batch, or the line that says why there is none (an exception would not come through as it is)."""
        draws = cut.draws(DRAWS).tolist() if self.augment.kind == "crop-flip" else [None] * len(cut.rows)
        try:
            views = [self._view(row, drawn) for row, drawn in zip(cut.rows.tolist(), draws, strict=True)]
        except UnreadableError as error:
            return str(error)
        return torch.stack(views), self.tree.targets[torch.from_numpy(cut.rows)]

    def _view(self, row: int, draws: list[float] | None) -> Tensor:
        image = opened(self.tree.folder / os.fsdecode(self.tree.paths[row]))
        return central_view(image, self.tree.size) if draws is None else random_view(image, self.tree.size, draws)


def _as_it_is(made: Any) -> Any:
    return made


def class_names(folder: Path) -> list[str]:
    """The class folders in a folder, sorted: their order numbers the classes."""
    with explained("read", folder):
        return sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())


def listing(folder: Path, classes: list[str]) -> list[tuple[str, int]]:
    """The path and the class number of every image below a folder, by class and then by name."""
    with explained("read", folder):
        found = [
            (f"{name}/{file}", number)
            for number, name in enumerate(classes)
            for file in sorted(path.name for path in (folder / name).iterdir())
            if file.lower().endswith(_ENDINGS)
        ]
    if not found:
        raise UnreadableError(f"{folder} holds no images: expected CLASS/*{' or CLASS/*'.join(_ENDINGS)}")
    return found
