"""Datasets by name, verified and held in memory, and the batches cut from them.

Listing the datasets (`leadline.core.plugins.names("leadline.data.datasets")`) and importing this package need no torch:
each name below is imported from its own file when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leadline.data.batches import Batches
    from leadline.data.dataset import Dataset, Split
    from leadline.data.loading import load

__all__ = ["Batches", "Dataset", "Split", "load"]

_HOME = {"Batches": "batches", "Dataset": "dataset", "Split": "dataset", "load": "loading"}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
