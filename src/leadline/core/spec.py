"""Spec: a plug-in's name and arguments as hashable, JSON-able data."""

from dataclasses import dataclass
from typing import Any


def _freeze(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple((str(key), _freeze(value[key])) for key in sorted(value))
    if isinstance(value, (list, tuple)):
        return tuple(_freeze(item) for item in value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"a Spec holds plain data (numbers, strings, lists); got {type(value).__name__} {value!r}")


@dataclass(frozen=True)
class Spec:
    """What is meant by `name(**args)`, before anything is built; equal meanings compare and hash equal.

    >>> Spec.of("net", widths=[8, 16]) == Spec.from_json({"name": "net", "args": {"widths": [8, 16]}})
    True
    >>> print(Spec.of("sgd", lr=0.1, momentum=0.9))
    sgd(lr=0.1, momentum=0.9)
    """

    name: str
    args: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def of(cls, name: str, **args: Any) -> "Spec":
        return cls(name, _freeze(args))

    @classmethod
    def from_json(cls, value: str | dict[str, Any]) -> "Spec":
        return cls.of(value) if isinstance(value, str) else cls.of(value["name"], **value.get("args", {}))

    @property
    def kwargs(self) -> dict[str, Any]:
        return dict(self.args)

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "args": self.kwargs}

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{key}={value!r}' for key, value in self.args)})" if self.args else self.name
