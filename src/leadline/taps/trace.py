"""One forward pass written down: every module call, the values it took and the values it gave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import CheckpointFunction

from leadline.core.errors import LeadlineError, UsageError
from leadline.taps.dataflow import Value, order, value_of
from leadline.taps.inputs import Inputs
from leadline.taps.places import Path, Place, Side, leaves, version
from leadline.taps.preserve import preserved
from leadline.taps.tape import overhear


@contextmanager
def _no_checkpointing() -> Iterator[None]:
    """Re-entrant checkpointing hides its inside from autograd; here it is called through instead."""
    CheckpointFunction.apply = staticmethod(lambda run, _, *args: run(*args))  # type: ignore[method-assign]
    try:
        yield
    finally:
        del CheckpointFunction.apply


@dataclass(eq=False)
class Met:
    """A tensor met at one side of a call, with what it held then."""

    path: Path
    tensor: Tensor
    version: int
    value: Value | None

    @classmethod
    def all(cls, found: Any) -> list[Met]:
        return [cls(path, tensor, version(tensor), value_of(tensor)) for path, tensor in leaves(found)]

    def settle(self) -> None:
        """A tensor made inside a custom autograd function gets its history when that returns."""
        if self.value is None and version(self.tensor) == self.version:
            self.value = value_of(self.tensor)


@dataclass(eq=False)
class Call:
    """Call number `number` of a module; `parent` is the call it happened in."""

    name: str
    module: nn.Module
    number: int
    parent: Call | None
    inputs: list[Met]
    outputs: list[Met] = field(default_factory=list)

    @cached_property
    def has_parameters(self) -> bool:
        return next(self.module.parameters(), None) is not None

    def around(self) -> Iterator[Call]:
        """The calls this one happened in, innermost first."""
        outer = self.parent
        while outer is not None:
            yield outer
            outer = outer.parent


@dataclass(eq=False)
class Trace:
    """The calls in the order they began (the model's own first), and every tensor, alive so that identities hold."""

    calls: list[Call]

    def __post_init__(self) -> None:
        self.times = Counter(call.name for call in self.calls)

    @property
    def root(self) -> Call:
        return self.calls[0]

    def place(self, call: Call, side: Side, met: Met) -> Place:
        return Place(call.name, side, met.path, call.number if self.times[call.name] > 1 else None)

    def end(self) -> Value | None:
        """The latest value the model returned."""
        returned = [met.value for met in self.root.outputs if met.value is not None]
        return max(returned, key=order, default=None)

    def sources(self) -> list[Value]:
        """Where data enters what autograd follows: floating-point inputs, and results of calls that took none."""
        found = {met.value: None for met in self.root.inputs if met.value is not None}
        busy = {id(call.parent) for call in self.calls if any(met.value for met in call.outputs)}
        for call in self.calls:
            if id(call) not in busy and not any(met.value for met in call.inputs):
                found |= {met.value: None for met in call.outputs if met.value is not None}
        return list(found)


def trace(model: nn.Module, inputs: Inputs) -> Trace:
    """Run the model once in evaluation mode, with everything differentiable followed, and leave it as found."""
    calls: list[Call] = []
    open_calls: list[Call] = []
    times: Counter[str] = Counter()

    def before(name: str, module: nn.Module, arguments: Mapping[str | int, Any]) -> None:
        calls.append(Call(name, module, times[name], open_calls[-1] if open_calls else None, Met.all(arguments)))
        open_calls.append(calls[-1])
        times[name] += 1

    def after(_: str, __: nn.Module, result: Any) -> None:
        open_calls.pop().outputs = Met.all(result)

    with torch.inference_mode(False), preserved(model), overhear(model, before, after), _no_checkpointing():
        model.eval()
        for parameter in model.parameters():
            parameter.requires_grad_(parameter.is_floating_point() or parameter.is_complex())
        try:
            with torch.enable_grad():
                _followed(inputs).call(model)
        except LeadlineError:
            raise
        except Exception as error:
            reason = str(error).strip().splitlines() or [""]
            raise UsageError(f"the model failed on this batch: {type(error).__name__}: {reason[0]}") from error
    for call in calls:
        for met in (*call.inputs, *call.outputs):
            met.settle()
    return Trace(calls)


def _followed(inputs: Inputs) -> Inputs:
    """The same inputs as copies, those of floating point as values that autograd follows."""
    return Inputs(_follow(inputs.args), _follow(dict(inputs.kwargs)))


def _follow(value: Any) -> Any:
    if isinstance(value, Tensor):
        copy = value.detach().clone()
        return copy.requires_grad_().clone() if value.is_floating_point() else copy
    if isinstance(value, dict):
        return {key: _follow(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)) and type(value) in (tuple, list):
        return type(value)(_follow(item) for item in value)
    return value
