"""One remedy at work on one model: what it may use, what it says it did, and the Change that comes out of it."""

from __future__ import annotations

import inspect
import sys
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from leadline.core import plugins
from leadline.core.errors import UsageError, unknown
from leadline.core.rows import alike
from leadline.remedies._wiring import Wiring
from leadline.taps.anatomy import Anatomy, anatomy
from leadline.taps.inputs import eager, understand
from leadline.taps.places import Place
from leadline.taps.preserve import preserved
from leadline.taps.surgery import Act, Surgery
from leadline.taps.tape import quiet

PACKAGE = "leadline.remedies"

_applied: weakref.WeakKeyDictionary[nn.Module, list[weakref.ref[Change]]] = weakref.WeakKeyDictionary()


@dataclass(eq=False, repr=False)
class Change:
    """What a remedy did: (part of the model, what was done to it), the parameters it added; prints as a short text."""

    remedy: str
    changed: tuple[tuple[str, str], ...]
    left: tuple[tuple[str, str], ...]
    parameters: tuple[nn.Parameter, ...]
    reason: str
    in_optimizer: bool
    _model: nn.Module
    _surgery: Surgery
    _undone: bool = False

    @property
    def no_op(self) -> bool:
        """Nothing was changed; `reason` says why."""
        return not self.changed

    def undo(self) -> None:
        """Take back what the remedy did, bit for bit; what training did to other parameters since then stays."""
        if self._undone:
            raise UsageError(f"{self.remedy} was already undone")
        later = _later_than(self)
        if later:
            raise UsageError(f"{self.remedy} was not the last remedy; undo {', '.join(later)} first")
        self._surgery.undo()
        self._undone = True
        _compile_anew()

    def __repr__(self) -> str:
        lines = [f"{self.remedy}: undone" if self._undone else self.remedy]
        if self.no_op:
            lines = [f"{self.remedy}: nothing changed, as {self.reason}"]
        lines += _grouped(self.changed)
        lines += [f"  left as it was: {line.strip()}" for line in _grouped(self.left)]
        if self.parameters and not self._undone:
            count = sum(parameter.numel() for parameter in self.parameters)
            where = "in the optimiser's first group" if self.in_optimizer else "to be added to the optimiser"
            lines.append(f"  {count:,} new parameters, {where}")
        return "\n".join(lines)

    __str__ = __repr__


def _later_than(change: Change) -> list[str]:
    """The remedies applied to the same model afterwards and still in force, the last first."""
    standing = [found for ref in _applied.get(change._model, []) if (found := ref()) and not found._undone]
    return [found.remedy for found in reversed(standing[standing.index(change) + 1 :])] if change in standing else []


def _grouped(entries: tuple[tuple[str, str], ...]) -> list[str]:
    groups: dict[str, list[str]] = {}
    for name, words in entries:
        groups.setdefault(words, []).append(name or "(model)")
    return [f"  {alike(names)}: {words}" for words, names in groups.items()]


class Treatment:
    """What a remedy works with. Everything it alters goes through here, so that it is said and can be undone."""

    def __init__(self, remedy: str, model: nn.Module, batch: Any, optimizer: Optimizer | None) -> None:
        self.remedy, self.model, self.optimizer = remedy, eager(model, warn=False), optimizer
        self._batch = batch
        self.surgery = Surgery()
        self.changed: dict[str, str] = {}
        self.left: dict[str, str] = {}
        self.parameters: list[nn.Parameter] = []

    @property
    def batch(self) -> Any:
        if self._batch is None:
            raise UsageError(f"{self.remedy} has to run the model to see how it is wired; give it a batch")
        return self._batch

    @cached_property
    def anatomy(self) -> Anatomy:
        """The blocks of the model as it was before the remedy."""
        return anatomy(self.model, self.batch)

    @cached_property
    def wiring(self) -> Wiring:
        """The values of one forward pass of the model as it was before the remedy."""
        return Wiring(self.model, self.batch)

    def say(self, name: str, words: str) -> None:
        """Something was done to this part."""
        self.changed[name] = f"{self.changed[name]}, {words}" if name in self.changed else words

    def leave(self, name: str, why: str) -> None:
        """This part would have been changed but for a reason."""
        self.left[name] = why

    def write(self, name: str, tensor: Tensor, value: Tensor, *, words: str) -> None:
        """Overwrite a parameter."""
        self.surgery.write(tensor, value)
        self.say(name, words)

    def at(self, place: Place, act: Act) -> None:
        """Act on the tensor at a place in every forward pass."""
        self.surgery.at(self.model, place, act)

    def attach(self, parent: str, name: str, child: nn.Module, *, like: Tensor) -> None:
        """Make `child` a part of the model, on the device and in the precision of `like`."""
        child.to(device=like.device, dtype=like.dtype if like.is_floating_point() else None)
        child.train(self.model.training)
        self.surgery.attach(self.model.get_submodule(parent), name, child)
        self.parameters += child.parameters()

    def enlist(self) -> None:
        """Give the new parameters to the first group: one group more would break learning-rate schedulers."""
        if self.optimizer is not None and self.parameters:
            group, new = self.optimizer.param_groups[0], set(map(id, self.parameters))
            self.surgery.later(partial(_dismiss, self.optimizer, new))
            group["params"].extend(self.parameters)

    def check(self) -> None:
        """The altered model has to take the batch it took before."""
        if self._batch is not None:
            with quiet(self.model), preserved(self.model), torch.no_grad():
                understand(self.model, self._batch).call(self.model.eval())


def _compile_anew() -> None:
    """Code that torch.compile made before knows nothing of new hooks; it is made again at the next call."""
    if "torch._dynamo" in sys.modules:
        torch.compiler.reset()


def _dismiss(optimizer: Optimizer, new: set[int]) -> None:
    for group in optimizer.param_groups:
        gone = [parameter for parameter in group["params"] if id(parameter) in new]
        group["params"][:] = [parameter for parameter in group["params"] if id(parameter) not in new]
        for parameter in gone:
            optimizer.state.pop(parameter, None)


def treat(model: nn.Module, name: str, batch: Any, optimizer: Optimizer | None, options: Mapping[str, Any]) -> Change:
    """Load the remedy and let it work; whatever fails on the way leaves the model as it was."""
    module = _module(name)
    allowed = [p.name for p in inspect.signature(module.apply).parameters.values() if p.kind is p.KEYWORD_ONLY]
    for option in options:
        if option not in allowed:
            raise unknown(f"option of {name}", option, allowed) if allowed else UsageError(f"{name} has no options")
    at = Treatment(name, model, batch, optimizer)
    try:
        reason = module.apply(at, **options)
        at.enlist()
        if at.parameters and type(model).__name__ == "DistributedDataParallel":
            raise UsageError(f"{name} adds parameters, which are to be there first; wrap the model after it")
        if at.changed:
            _compile_anew()
            at.check()
    except BaseException:
        at.surgery.undo()
        raise
    return _change(at, reason)


def _module(name: str) -> Any:
    known = [file.replace("_", "-") for file in plugins.names(PACKAGE)]
    if name not in known:
        raise unknown("remedy", name, known, listing="leadline list remedies")
    return plugins.module(PACKAGE, name.replace("-", "_"), kind="remedy")


def _change(at: Treatment, reason: str) -> Change:
    change = Change(
        remedy=at.remedy,
        changed=tuple(at.changed.items()),
        left=tuple(at.left.items()),
        parameters=tuple(at.parameters),
        reason="" if at.changed else reason,
        in_optimizer=at.optimizer is not None,
        _model=at.model,
        _surgery=at.surgery,
    )
    if at.changed:
        _applied.setdefault(at.model, []).append(weakref.ref(change))
    return change
