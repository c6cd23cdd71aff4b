"""Tape: listens to a model through forward hooks and tensor hooks; the only file that registers hooks."""

import sys
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from leadline.core.errors import UsageError, unknown
from leadline.taps.inputs import eager
from leadline.taps.places import Place, Side, arguments, pick, version
from leadline.taps.reductions import Array, Reduction

Parts = dict[int, list[Array]]
Arguments = Mapping[str | int, Any]

_attached: "weakref.WeakKeyDictionary[nn.Module, Tape]" = weakref.WeakKeyDictionary()


@dataclass(frozen=True)
class Tap:
    """Keep `reduction` of the value, or of the gradient of the loss by the value, at `place`."""

    place: Place
    reduction: Reduction
    of: Literal["value", "gradient"] = "value"


class Heard(Mapping[Tap, Array]):
    """What the taps kept, as float64 arrays; for a tap that kept nothing, `why` says why."""

    def __init__(self, kept: Mapping[Tap, Array], missing: Mapping[Tap, str]) -> None:
        self._kept, self._missing = dict(kept), dict(missing)

    def __getitem__(self, tap: Tap) -> Array:
        return self._kept[tap]

    def __iter__(self) -> Iterator[Tap]:
        return iter(self._kept)

    def __len__(self) -> int:
        return len(self._kept)

    def why(self, tap: Tap) -> str:
        """Why there is nothing for this tap; empty if there is something."""
        return "" if tap in self._kept else self._missing.get(tap, "nothing listened there")


class _Slot:
    """One reduction of one tensor: filled at once for a value, during the backward pass for a gradient."""

    __slots__ = ("failure", "result")

    def __init__(self) -> None:
        self.result: Tensor | None = None
        self.failure = "no backward pass reached it"

    def fill(self, reduction: Reduction, tensor: Tensor) -> None:
        try:
            with torch.no_grad(), _full_precision(tensor.device.type):
                self.result = reduction.map(tensor)
        except RuntimeError as error:  # a measurement must not end somebody's training
            self.failure = f"{reduction.name} failed: {str(error).splitlines()[0]}"


@dataclass(eq=False)
class _Line:
    """A tap, what came in over it since the last reading, and the trouble there was."""

    tap: Tap
    slots: list[_Slot] = field(default_factory=list)
    trouble: str = ""
    heard_pass: int = -1  # the last pass whose forward side this line took part in

    def clear(self) -> None:
        self.slots, self.trouble = [], ""

    def why(self) -> str:
        return self.trouble or next((slot.failure for slot in self.slots), "the module was not called")


class _Hook:
    """A hook that a copied or pickled model does not take along."""

    __slots__ = ("listen",)

    def __init__(self, listen: Callable[..., None]) -> None:
        self.listen = listen

    def __call__(self, *args: Any) -> None:
        self.listen(*args)

    def __reduce__(self) -> tuple[Any, ...]:
        return _Hook, (_ignore,)


def _ignore(*_: Any) -> None:
    """What a copied hook does."""


class Tape:
    """Values and gradients at the tapped places of a model, reduced where they are met.

    `with Tape(model, taps) as tape: loss(model(x)).backward(); heard = tape.read()`. A tap's reduction runs inside the
    hook; only its small result is kept, on its device, until `read` fetches all of them in one transfer. Gradients come
    from tensor hooks set on the value as it is when the hook runs, so a later in-place change of the tensor does not
    matter; (tensor, version) recognises a value met at two places, which is then reduced once.
    """

    def __init__(
        self, model: nn.Module, taps: Sequence[Tap], *, accept: Callable[[nn.Module], bool] = lambda _: True
    ) -> None:
        """`accept` is asked with the model, at the start of each of its forward passes, whether to listen to it."""
        self.model = eager(model)
        self._accept = accept
        self._modules = _listenable(self.model)
        self._lines = [_Line(tap) for tap in dict.fromkeys(taps)]
        self._places: dict[tuple[str, Side], dict[Place, list[_Line]]] = {}
        for line in self._lines:
            place = line.tap.place
            if place.module not in self._modules:
                raise unknown("module", place.module, self._modules)
            self._places.setdefault((place.module, place.side), {}).setdefault(place, []).append(line)
        self._hooks = ExitStack()
        self.listening = False
        self._passes = 0
        self._begin(open=False)

    # -- attaching ---------------------------------------------------------------------------------------------------

    def attach(self) -> "Tape":
        """Start to listen; a model that already has a tape is an error, not a second set of hooks."""
        if self.model in _attached:
            raise UsageError(f"a tape is already attached to this {type(self.model).__name__}; detach it first")
        _attached[self.model] = self
        self.resume()
        return self

    def detach(self) -> None:
        """Remove every hook and let the model go; what was heard stays readable."""
        self.pause()
        if _attached.get(self.model) is self:
            del _attached[self.model]

    def __enter__(self) -> "Tape":
        return self.attach()

    def __exit__(self, *_: object) -> None:
        self.detach()

    def resume(self) -> None:
        """Register the hooks. Until `pause`, compiled code runs eagerly, as hooks inside it would not be called."""
        self.pause()
        with ExitStack() as hooks:
            hooks.enter_context(_compiled_code_runs_eagerly())
            hooks.callback(self.model.register_forward_pre_hook(_Hook(self._start)).remove)
            for name in dict.fromkeys(name for name, _ in self._places):
                _around(self._modules[name], hooks, partial(self._before, name), partial(self._after, name))
            self._hooks = hooks.pop_all()
        self.listening = True

    def pause(self) -> None:
        """Remove every hook, but keep the model claimed."""
        self._hooks.close()
        self.listening = self._open = False

    # -- listening ---------------------------------------------------------------------------------------------------

    def _begin(self, *, open: bool) -> None:
        self._open = open
        self._calls: dict[str, int] = {}
        self._met: dict[tuple[int, int], tuple[weakref.ref[Tensor], dict[tuple[Reduction, str], _Slot]]] = {}

    def _start(self, model: nn.Module, _: Any) -> None:
        if not _in_backward():
            self._begin(open=self._accept(model))
            self._passes += self._open

    def _before(self, name: str, _: nn.Module, given: Arguments) -> None:
        if self._open:
            self._calls[name] = self._calls.get(name, -1) + 1
            self._meet(name, "in", given)

    def _after(self, name: str, _: nn.Module, output: Any) -> None:
        if self._open:
            self._meet(name, "out", output)

    def _meet(self, name: str, side: Side, value: Any) -> None:
        recomputed = _in_backward()
        for place, lines in self._places.get((name, side), {}).items():
            if place.call is not None and not recomputed and place.call != self._calls[name]:
                continue
            tensor = pick(value, place.path)
            for line in lines:
                if recomputed and (line.tap.of == "value" or line.heard_pass == self._passes):
                    continue  # gradient checkpointing runs the forward pass again; it was heard the first time
                line.trouble = _trouble(line.tap, tensor, recomputed)
                if tensor is not None and not line.trouble:
                    line.slots.append(self._slot(line.tap, tensor))
                    line.heard_pass = line.heard_pass if recomputed else self._passes

    def _slot(self, tap: Tap, tensor: Tensor) -> _Slot:
        key = id(tensor), version(tensor)
        reference, slots = self._met.get(key, (None, {}))
        if reference is None or reference() is not tensor:
            slots = {}
            self._met[key] = weakref.ref(tensor), slots
        slot = slots.get((tap.reduction, tap.of))
        if slot is None:
            slot = slots[tap.reduction, tap.of] = _Slot()
            if tap.of == "value":
                slot.fill(tap.reduction, tensor)
            else:
                self._hook_gradient(tensor, tap.reduction, slot)
        return slot

    def _hook_gradient(self, tensor: Tensor, reduction: Reduction, slot: _Slot) -> None:
        handle = tensor.register_hook(lambda gradient: slot.fill(reduction, gradient))  # type: ignore[no-untyped-call]
        if tensor.is_leaf:  # the caller's own tensor; any other dies with its graph
            self._hooks.callback(handle.remove)

    # -- reading -----------------------------------------------------------------------------------------------------

    def read(self, *, scale: float = 1.0, gather: Callable[[Parts], list[Parts]] | None = None) -> Heard:
        """Everything heard since the last reading, in one transfer; gradients are divided by `scale` (the loss scale).

        `gather` exchanges what each process heard for what all of them heard; every process has to read then.
        """
        lines, parts = self._lines, self._fetch()
        troubles = {line.tap: self._why(line) for line in lines}
        everyone = gather(parts) if gather else [parts]
        with np.errstate(all="ignore"):
            heard = sorted(set().union(*everyone))
            kept = dict(_merged(lines[index].tap, index, everyone, scale) for index in heard)
        for line in lines:
            line.clear()
        self._passes = 0
        return Heard(kept, troubles)

    def _why(self, line: _Line) -> str:
        return line.why() if self._passes else "the model was not called while the tape listened"

    def _fetch(self) -> Parts:
        results = [
            (index, slot.result)
            for index, line in enumerate(self._lines)
            for slot in line.slots
            if slot.result is not None
        ]
        parts: Parts = {}
        for (index, _), array in zip(results, _to_host([result for _, result in results]), strict=True):
            parts.setdefault(index, []).append(array)
        return parts


def _merged(tap: Tap, index: int, everyone: Sequence[Parts], scale: float) -> tuple[Tap, Array]:
    factor = scale**-tap.reduction.degree if tap.of == "gradient" else 1.0
    pieces = [piece * factor for parts in everyone for piece in parts.get(index, [])]
    return tap, np.asarray(tap.reduction.merge(pieces), dtype=np.float64)


def _trouble(tap: Tap, tensor: Tensor | None, recomputed: bool) -> str:
    if tensor is None:
        return "there was no tensor at that place"
    if tap.of == "gradient" and not tensor.requires_grad:
        return "the tensor does not require a gradient"
    if recomputed and tap.place.call is not None:
        return "calls of one module cannot be told apart under re-entrant checkpointing"
    return ""


def _to_host(tensors: Sequence[Tensor]) -> list[Array]:
    """Small tensors as float64 arrays: one copy off each device and dtype, however many they are.

    Those that are distributed over processes (DTensor) are put together first; every process has to read then.
    """
    tensors = [tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor for tensor in tensors]
    groups: dict[tuple[torch.device, torch.dtype], list[int]] = {}
    for index, tensor in enumerate(tensors):
        groups.setdefault((tensor.device, tensor.dtype), []).append(index)
    arrays: dict[int, Array] = {}
    for indices in groups.values():
        flat = torch.cat([tensors[index].detach().reshape(-1) for index in indices]).cpu().double().numpy()
        ends = np.cumsum([tensors[index].numel() for index in indices])[:-1]
        for index, piece in zip(indices, np.split(flat, ends), strict=True):
            arrays[index] = piece.reshape(tuple(tensors[index].shape))
    return [arrays[index] for index in range(len(tensors))]


def _around(
    module: nn.Module,
    hooks: ExitStack,
    before: Callable[[nn.Module, Arguments], None],
    after: Callable[[nn.Module, Any], None],
) -> None:
    """Set two hooks on a module and leave their removal with `hooks`."""
    enter = _Hook(lambda module, args, kwargs: before(module, arguments(args, kwargs)))
    leave = _Hook(lambda module, _, output: after(module, output))
    hooks.callback(module.register_forward_pre_hook(enter, with_kwargs=True).remove)
    hooks.callback(module.register_forward_hook(leave).remove)


def _listenable(model: nn.Module) -> dict[str, nn.Module]:
    """The modules that take hooks: all but scripted ones."""
    return {name: module for name, module in model.named_modules() if not isinstance(module, torch.jit.ScriptModule)}


def _full_precision(device: str) -> AbstractContextManager[Any]:
    return torch.autocast(device, enabled=False) if torch.is_autocast_enabled(device) else nullcontext()


def _in_backward() -> bool:
    return torch._C._current_graph_task_id() != -1


@contextmanager
def _compiled_code_runs_eagerly() -> Iterator[None]:
    if "torch._dynamo" not in sys.modules:  # then nothing can have been compiled
        yield
        return
    stance = torch.compiler.set_stance("force_eager")
    try:
        yield
    finally:
        stance.__exit__(None, None, None)


@contextmanager
def quiet(model: nn.Module) -> Iterator[None]:
    """Nothing that runs on `model` inside is heard by a tape attached to it from outside."""
    tape = _attached.pop(model, None)
    if tape is None:
        yield
        return
    listening = tape.listening
    tape.pause()
    try:
        yield
    finally:
        _attached[model] = tape
        if listening:
            tape.resume()


@contextmanager
def overhear(
    model: nn.Module, before: Callable[[str, nn.Module, Arguments], None], after: Callable[[str, nn.Module, Any], None]
) -> Iterator[None]:
    """Call `before(name, module, arguments)` and `after(name, module, result)` around every module call inside."""
    with quiet(model), ExitStack() as hooks:
        hooks.enter_context(_compiled_code_runs_eagerly())
        for name, module in _listenable(model).items():
            _around(module, hooks, partial(before, name), partial(after, name))
        yield
