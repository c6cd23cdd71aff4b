"""Plug-ins by file name: `probes/gradient_norm_ratio.py` defines `GradientNormRatio` (or is itself the plug-in)."""

import ast
import importlib
import importlib.util
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from leadline.core.errors import unknown


def class_name(name: str) -> str:
    """The class a plug-in file defines.

    >>> class_name("gradient_norm_ratio")
    'GradientNormRatio'
    """
    return "".join(word.capitalize() for word in name.split("_"))


def folder(package: str) -> Path:
    """The folder of a package, found without importing the package's modules."""
    *parents, leaf = package.split(".")
    return Path(__file__).parents[1].joinpath(*parents[1:], leaf)


@cache
def names(package: str) -> tuple[str, ...]:
    """Every plug-in of a package such as `leadline.probes`: its public files, sorted; nothing is imported."""
    return tuple(sorted(path.stem for path in folder(package).glob("*.py") if not path.stem.startswith("_")))


def card(package: str, name: str) -> str:
    """The docstring of a plug-in's file, read without importing it."""
    tree = ast.parse((folder(package) / f"{name}.py").read_text(encoding="utf-8"))
    return ast.get_docstring(tree) or ""


def module(package: str, name: str, *, kind: str) -> ModuleType:
    """The plug-in's module; an unknown name is an error that offers the nearest ones."""
    if name not in names(package):
        raise unknown(kind, name, names(package), listing=f"leadline list {package.rsplit('.', 1)[-1]}")
    return importlib.import_module(f"{package}.{name}")


def load(package: str, name: str, *, kind: str) -> Any:
    """The class called by the file's name.

    >>> load("leadline.core", "spec", kind="part")(name="sgd", args=()).name
    'sgd'
    """
    return getattr(module(package, name, kind=kind), class_name(name))
