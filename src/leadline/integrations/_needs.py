"""What integrations share: the package they need, and the name under which a tracker knows a run."""

import importlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from leadline.core.errors import UsageError


class MissingPackage(UsageError, ImportError):
    """An integration was asked for whose package is not installed."""


def needs(module: str, extra: str) -> ModuleType:
    """The module; if its package is missing, one line that names the extra to install."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != module.partition(".")[0]:
            raise
        raise MissingPackage(f"{error.name} is not installed; pip install 'leadline[{extra}]'") from None


def remembered(run: Path, tracker: str, make: Callable[[], str]) -> str:
    """The run's name at a tracker, made once and kept in the run folder, so that a resumed run goes on there."""
    path = run / f"{tracker}.id"
    try:
        known = path.read_text(encoding="utf-8").strip()
    except OSError:
        known = ""
    if not known:
        known = make()
        path.write_text(known + "\n", encoding="utf-8")
    return known
