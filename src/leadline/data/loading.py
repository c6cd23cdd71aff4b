"""load: a dataset by name, as it is or changed in a way that suits all of them."""

import inspect
from pathlib import Path
from typing import Any

from torch.nn.functional import one_hot

from leadline.core import plugins
from leadline.core.errors import UsageError, unknown
from leadline.data.dataset import Dataset, InMemory, Split
from leadline.data.place import Place, data_root
from leadline.data.whiten import whitened

PACKAGE = "leadline.data.datasets"

_FOR_ALL = ("whiten", "vectors")


def load(name: str, *, root: Path | None = None, download: bool = True, **args: Any) -> Dataset:
    """The dataset called `name`, from the data folder `root` (LEADLINE_DATA, or else the user's cache folder).

    Missing official files are fetched where `download` allows it. `args` are the dataset's own arguments, and

    - `whiten=k`: inputs become the k largest principal components with variance one (Li et al., appendix B: k = 10);
    - `vectors=True`: class numbers become the basis vectors e_1, ..., e_classes to regress on.

    >>> digits = load("digits", whiten=10, vectors=True)
    >>> digits.shape, digits.classes, digits.train.targets.shape
    ((10,), 10, torch.Size([1437, 10]))
    """
    make = plugins.module(PACKAGE, name, kind="dataset").load
    accepted = [*list(inspect.signature(make).parameters)[1:], *_FOR_ALL]
    for key in args:
        if key not in accepted:
            raise unknown(f"argument of dataset {name}:", key, accepted)
    own = {key: value for key, value in args.items() if key not in _FOR_ALL}
    dataset: Dataset = make(Place(root or data_root(), download), **own)
    if (k := args.get("whiten")) is not None:
        dataset = whitened(dataset, k)
    return _as_vectors(dataset) if args.get("vectors") else dataset


def _as_vectors(dataset: Dataset) -> Dataset:
    if dataset.train.targets.is_floating_point():
        raise UsageError(f"vectors=True: the targets of {dataset.name} are values to regress on already, not classes")

    def change(split: Split) -> InMemory:
        return InMemory(split.inputs, one_hot(split.targets, dataset.classes).double())

    return dataset.changed(change(dataset.train), change(dataset.test), vectors=True)
