"""load: a dataset by name, as it is or changed in a way that suits all of them."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import ValidationError, create_model
from torch import Tensor
from torch.nn.functional import avg_pool2d, one_hot

from leadline.core import plugins
from leadline.core.errors import UsageError, unknown
from leadline.data.dataset import Dataset, InMemory, Split
from leadline.data.place import Place, data_root
from leadline.data.whiten import whitened

PACKAGE = "leadline.data.datasets"


def load(name: str, *, root: Path | None = None, download: bool = True, **args: Any) -> Dataset:
    """The dataset called `name`, from the data folder `root` (LEADLINE_DATA, or else the user's cache folder).

    Missing official files are fetched where `download` allows it. `args` are the dataset's own arguments, and

    - `train=n`, `test=n`: only the first n samples of a split;
    - `pool=k`: images become means over squares of k x k pixels;
    - `whiten=k`: inputs become the k largest principal components with variance one (Li et al., appendix B: k = 10);
    - `vectors=True`: class numbers become the basis vectors e_1, ..., e_classes to regress on.

    >>> digits = load("digits", whiten=10, vectors=True)
    >>> digits.shape, digits.classes, digits.train.targets.shape
    ((10,), 10, torch.Size([1437, 10]))
    """
    make = plugins.module(PACKAGE, name, kind="dataset").load
    own, general = _options(make), _options(_changed)
    values = _checked(name, general | own, args)
    made = make(Place(root or data_root(), download), **{key: values[key] for key in own})
    return _changed(made, **{key: values[key] for key in general})


def _options(function: Callable[..., Dataset]) -> dict[str, Any]:
    """The types and defaults of a function's arguments after the first."""
    parameters = list(inspect.signature(function).parameters.values())[1:]
    return {parameter.name: (parameter.annotation, parameter.default) for parameter in parameters}


def _checked(name: str, options: dict[str, Any], args: dict[str, Any]) -> dict[str, Any]:
    for key in args:
        if key not in options:
            raise unknown(f"argument of dataset {name}:", key, options)
    try:
        return dict(create_model("Arguments", **options)(**args))
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(f"dataset {name}: {first['loc'][0]}={first['input']!r} is wrong: {first['msg']}") from error


def _changed(
    dataset: Dataset,
    *,
    train: int | None = None,
    test: int | None = None,
    pool: int | None = None,
    whiten: int | None = None,
    vectors: bool = False,
) -> Dataset:
    shorter = _pooled(_first(dataset, train, test), pool)
    components = shorter if whiten is None else whitened(shorter, whiten)
    return _as_vectors(components) if vectors else components


def _first(dataset: Dataset, train: int | None, test: int | None) -> Dataset:
    """The dataset with the first samples of its splits; as it is where that is all of them."""
    splits = (dataset.train, dataset.test)
    counts = tuple(map(len, splits))
    wanted = tuple(have if want is None else want for want, have in zip((train, test), counts, strict=True))
    if wanted == counts:
        return dataset
    if not all(0 < want <= have for want, have in zip(wanted, counts, strict=True)):
        raise UsageError(f"dataset {dataset.name}: (train, test)={wanted}: expected at least 1 and at most {counts}")
    first = [InMemory(split.inputs[:n], split.targets[:n]) for split, n in zip(splits, wanted, strict=True)]
    return dataset.changed(first[0], first[1], first=wanted)


def _pooled(dataset: Dataset, k: int | None) -> Dataset:
    if k is None:
        return dataset
    if len(dataset.shape) != 3 or not 1 <= k <= min(dataset.shape[1:]):
        raise UsageError(f"dataset {dataset.name}: pool={k}: expected images, squares that fit into {dataset.shape}")
    splits = (InMemory(_means(split.inputs, k), split.targets) for split in (dataset.train, dataset.test))
    return dataset.changed(*splits, pool=k)


def _means(images: Tensor, k: int) -> Tensor:
    pixels = not images.is_floating_point()
    means = avg_pool2d(images.float() if pixels else images, k)
    return means.round().to(images.dtype) if pixels else means


def _as_vectors(dataset: Dataset) -> Dataset:
    if dataset.train.targets.is_floating_point():
        raise UsageError(f"vectors=True: the targets of {dataset.name} are values to regress on already, not classes")

    def change(split: Split) -> InMemory:
        return InMemory(split.inputs, one_hot(split.targets, dataset.classes).double())

    return dataset.changed(change(dataset.train), change(dataset.test), vectors=True)
