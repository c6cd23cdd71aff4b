"""load: a dataset by name, as it is or changed the same way for all of them."""

import inspect
from pathlib import Path
from typing import Any

from leadline.core import plugins
from leadline.core.errors import unknown
from leadline.data.dataset import Dataset
from leadline.data.place import Place, data_root

PACKAGE = "leadline.data.datasets"


def load(name: str, *, root: Path | None = None, download: bool = True, **args: Any) -> Dataset:
    """The dataset called `name`, from the data folder `root` (LEADLINE_DATA, or else the user's cache folder).

    Missing official files are fetched where `download` allows it. `args` are the dataset's own arguments.

    >>> digits = load("digits")
    >>> digits.shape, digits.classes, len(digits.train), len(digits.test)
    ((1, 8, 8), 10, 1437, 360)
    """
    make = plugins.module(PACKAGE, name, kind="dataset").load
    accepted = list(inspect.signature(make).parameters)[1:]
    for key in args:
        if key not in accepted:
            raise unknown(f"argument of dataset {name}:", key, accepted)
    dataset: Dataset = make(Place(root or data_root(), download), **args)
    return dataset
