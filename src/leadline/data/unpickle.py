"""A pickle that can build arrays, dicts, lists, strings and numbers, and nothing else: how CIFAR comes."""

import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from leadline.core.errors import UnreadableError


def restricted(content: bytes, *, path: Path) -> Any:
    """The plain value in a pickle; one that asks for anything else is refused before it is built."""
    try:
        return _built(_Plain(io.BytesIO(content), encoding="latin1").load())
    except Exception as error:
        reason = (str(error).splitlines() or [""])[0][:200]
        raise UnreadableError(f"{path} is not a pickle of plain arrays: {reason or type(error).__name__}") from error


class _Plain(pickle._Unpickler):
    """Python's own unpickler, whose memory does not grow by what a file merely claims.

    Where numpy would be asked to restore an array or a type of number, what is to be restored is only noted down.
    """

    def find_class(self, module: str, name: str) -> Callable[..., Any]:
        match module, name:
            case ("numpy.core.multiarray" | "numpy._core.multiarray", "_reconstruct"):
                return lambda *_: _Array()
            case ("numpy", "dtype"):
                return lambda code, *_: _Number(code)
            case ("numpy", "ndarray"):
                return lambda *_: _refuse("it builds an array directly")
        return _refuse(f"it asks for {module}.{name}")


class _Number:
    """A type of number: its code and, once its state was read, the order of its bytes."""

    def __init__(self, code: str) -> None:
        self.type = np.dtype(code)
        if self.type.kind not in "biuf":
            _refuse(f"it asks for an array of {code!r}")

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.type = self.type.newbyteorder(state[1])


class _Array:
    """An array: what its state says it holds."""

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, self.shape, self.number, self.fortran, self.raw = state

    def array(self) -> NDArray[Any]:
        raw = self.raw.encode("latin1") if isinstance(self.raw, str) else bytes(self.raw)
        flat = np.frombuffer(raw, self.number.type)
        return flat.reshape(self.shape, order="F" if self.fortran else "C").copy()


def _built(value: Any) -> Any:
    """The value with its arrays made."""
    if isinstance(value, dict):
        return {key: _built(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_built, value))
    return value.array() if isinstance(value, _Array) else value


def _refuse(why: str) -> NoReturn:
    raise pickle.UnpicklingError(why)
