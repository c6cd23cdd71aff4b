"""Surgery: alters a model in place step by step, and takes every step back bit for bit, the last one first."""

import copy
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from leadline.core.errors import UsageError, unknown
from leadline.taps.places import Path, Place, arguments, pick

Act = Callable[[Tensor], Tensor | None]

_REGISTRIES = ("_parameters", "_buffers", "_modules")


class Surgery:
    """Names in the state dict, the model's class and everybody's references to its parts stay valid.

    What is added to the flow of values acts through hooks, so that no module has to be wrapped; hooks and what they
    hold are copied with the model. `undo` leaves alone what others did to the model in the meantime.
    """

    def __init__(self) -> None:
        self._back: list[Callable[[], object]] = []

    def write(self, tensor: Tensor, value: Tensor) -> None:
        """Overwrite a parameter or buffer."""
        self.later(partial(_fill, tensor, tensor.detach().clone()))
        _fill(tensor, value)

    def attach(self, parent: nn.Module, name: str, child: nn.Module) -> None:
        """Make `child` a part of `parent`, for its parameters to belong to the model; `parent` does not call it."""
        if hasattr(parent, name):
            raise UsageError(f"{type(parent).__name__} already has something called {name!r}")
        parent.add_module(name, child)
        self.later(partial(parent.__delattr__, name))

    def reshape(self, module: nn.Module) -> None:
        """Have the module's class and what is registered on it, in order, put back by `undo`; call before changing."""
        found = {name: dict(getattr(module, name)) for name in _REGISTRIES}
        self.later(partial(_register, module, type(module), found))

    def at(self, model: nn.Module, place: Place, act: Act) -> None:
        """Call `act` with the tensor at this place of every forward pass, and pass on what it returns, if anything."""
        modules = dict(model.named_modules())
        if place.module not in modules:
            raise unknown("module", place.module, modules)
        module, meeting = modules[place.module], _Meeting(place, act)
        if place.side == "in":
            handle = module.register_forward_pre_hook(meeting.before, with_kwargs=True)
        else:
            handle = module.register_forward_hook(meeting.after)
        self.later(handle.remove)

    def later(self, back: Callable[[], object]) -> None:
        """Have `back` called by `undo`."""
        self._back.append(back)

    def undo(self) -> None:
        while self._back:
            self._back.pop()()


class _Meeting:
    """The hooks of one place."""

    def __init__(self, place: Place, act: Act) -> None:
        self.place, self.act = place, act

    def before(self, _: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        found = self._passed_on(arguments(args, kwargs))
        return None if found is None else (tuple(found[i] for i in range(len(args))), {k: found[k] for k in kwargs})

    def after(self, _: nn.Module, __: Any, output: Any) -> Any:
        return self._passed_on(output)

    def _passed_on(self, value: Any) -> Any:
        tensor = pick(value, self.place.path)
        if tensor is None:
            raise UsageError(f"no tensor at {self.place} in this call; there was one when the model was altered")
        new = self.act(tensor)
        return None if new is None else put(value, self.place.path, new)


def put(value: Any, path: Path, tensor: Tensor) -> Any:
    """A shallow copy of nested tuples, lists, mappings and dataclasses with `tensor` at `path`.

    >>> put((1, {"a": 2}), (1, "a"), torch.tensor(3))
    (1, {'a': tensor(3)})
    """
    if not path:
        return tensor
    key, *rest = path
    if isinstance(value, (tuple, list)):
        items = [put(item, tuple(rest), tensor) if index == key else item for index, item in enumerate(value)]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    found: Any = copy.copy(value)
    if isinstance(value, Mapping):
        found[key] = put(value[key], tuple(rest), tensor)
    else:
        setattr(found, str(key), put(getattr(value, str(key)), tuple(rest), tensor))
    return found


@torch.no_grad()
def _fill(tensor: Tensor, value: Tensor) -> None:
    tensor.copy_(value)


def _register(module: nn.Module, kind: type[nn.Module], found: Mapping[str, Mapping[str, Any]]) -> None:
    module.__class__ = kind
    for name in _REGISTRIES:
        registry = getattr(module, name)
        registry.clear()
        registry.update(found[name])
