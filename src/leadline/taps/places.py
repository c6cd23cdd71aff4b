"""Where a tensor is met: one side of one module call, and the path to it inside what was passed or returned."""

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor

Path = tuple[str | int, ...]
Side = Literal["in", "out"]


@dataclass(frozen=True)
class Place:
    """Tensor `path` of the arguments (`in`) or of the result (`out`) of call number `call` of a module.

    The path into the arguments starts with a position (int) or a keyword (str); call None means every call.

    >>> print(Place("layer1.0", "in", (0,)), Place("shared", "out", call=1))
    layer1.0:in.0 shared@2:out
    """

    module: str
    side: Side
    path: Path = ()
    call: int | None = None

    def __str__(self) -> str:
        name = (self.module or "(model)") + ("" if self.call is None else f"@{self.call + 1}")
        return ".".join((f"{name}:{self.side}", *map(str, self.path)))


def version(tensor: Tensor) -> int:
    """How often the tensor was overwritten in place; inference tensors do not count."""
    return 0 if tensor.is_inference() else tensor._version


def _entries(value: Any) -> Iterator[tuple[str | int, Any]]:
    if isinstance(value, Mapping):
        yield from ((key, value[key]) for key in value if isinstance(key, (str, int)))
    elif isinstance(value, (tuple, list)):
        yield from enumerate(value)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield from ((field.name, getattr(value, field.name, None)) for field in dataclasses.fields(value))


def leaves(value: Any) -> Iterator[tuple[Path, Tensor]]:
    """Every tensor inside nested tuples, lists, mappings and dataclasses, with its path.

    >>> import torch
    >>> [path for path, _ in leaves((torch.ones(1), {"a": [torch.ones(1)]}))]
    [(0,), (1, 'a', 0)]
    """
    if isinstance(value, Tensor):
        yield (), value
    else:
        for key, item in _entries(value):
            yield from (((key, *path), tensor) for path, tensor in leaves(item))


def pick(value: Any, path: Path) -> Tensor | None:
    """The tensor that `leaves` found at `path`, or None if there is none now."""
    for key in path:
        if isinstance(value, Mapping):
            value = value.get(key)
        elif isinstance(value, (tuple, list)) and isinstance(key, int):
            value = value[key] if key < len(value) else None
        else:
            value = getattr(value, str(key), None)
    return value if isinstance(value, Tensor) else None


def arguments(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str | int, Any]:
    """Positional and keyword arguments of one call under one roof, as paths into them begin."""
    found: dict[str | int, Any] = dict(enumerate(args))
    return found | dict(kwargs)
