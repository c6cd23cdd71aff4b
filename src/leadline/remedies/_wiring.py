"""How a model is wired: where skips and branches are added, and which parameters act where, from one forward pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from torch import nn

from leadline.taps.anatomy import Block
from leadline.taps.dataflow import Flow, Value, ancestry, cuts, operation, order
from leadline.taps.inputs import understand
from leadline.taps.places import Place, Side, version
from leadline.taps.skips import SCALES, SUMS, VIEWS, Layers
from leadline.taps.trace import Call, Met, trace


@dataclass(frozen=True)
class Join:
    """Where one skip of a block ends: the values that are added there, seen through nested sums and views."""

    members: tuple[Value, ...]  # all values from the start of the skip to the sum, in order
    seen_through: tuple[Value, ...]  # the sum, and the sums and views inside it
    branches: tuple[Value, ...]
    skip: Value


@dataclass(frozen=True)
class Act:
    """An operation that parameters act in, with the names of these in the model, a bias last.

    `is_last`: nothing but sums, views and constant factors comes between it and the sum that the branch ends in.
    """

    value: Value
    parameters: dict[str, nn.Parameter]
    is_last: bool

    @property
    def owner(self) -> str:
        """The module of the first of them, the parametrised one where it is computed from others."""
        return next(iter(self.parameters)).rpartition(".")[0].split(".parametrizations.")[0]

    @property
    def weighs(self) -> bool:
        """A layer's work: some parameter has two or more dimensions."""
        return any(parameter.ndim >= 2 for parameter in self.parameters.values())


class Wiring:
    """The values of one forward pass of a model."""

    def __init__(self, model: nn.Module, batch: Any) -> None:
        self.trace = trace(model, understand(model, batch))
        self.end = self.trace.end()
        everything = ancestry(self.end) if self.end is not None else {}
        self.flow = Flow(everything, self.trace.sources())
        self._layers = Layers(self.flow)
        self._names = {id(parameter): name for name, parameter in model.named_parameters()}

    # -- places ------------------------------------------------------------------------------------------------------

    def met(self, place: Place) -> Met:
        """The tensor met at a place."""
        for call in self.trace.calls:
            if call.name == place.module and place.call in (None, call.number):
                for met in call.inputs if place.side == "in" else call.outputs:
                    if met.path == place.path:
                        return met
        raise LookupError(f"nothing was met at {place}")

    def is_overwritten(self, place: Place) -> bool:
        """Something later in the pass changes the tensor at this place in place (an in-place ReLU, `x += y`)."""
        met = self.met(place)
        return version(met.tensor) != met.version

    def place(self, value: Value, side: Side, calls: Sequence[Call]) -> Place | None:
        """A place of modules called once where a value is met at one side of these calls."""
        for call in calls:
            for met in call.inputs if side == "in" else call.outputs:
                if met.value == value and self.trace.times[call.name] == 1:
                    return self.trace.place(call, side, met)
        return None

    # -- joins -------------------------------------------------------------------------------------------------------

    def joins(self, block: Block) -> Iterator[Join]:
        """The sums at which the skips of a block end, in order."""
        start, end = self._ends(block)
        if start is None or end is None:
            return
        values = self.flow.between(start, end)
        place = {value: index for index, value in enumerate(values)}
        for first, last in pairwise(cuts(values, self.flow.everything)):
            members = values[place[first] : place[last] + 1]
            depth = self._layers.depth(self.flow, members)
            if operation(last) in SUMS and depth[last]:
                through, addends = self._addends(members)
                skip = min(addends, key=lambda v: (depth[v], v != first, len(self.flow.between(first, v))))
                if len(addends) > 1:
                    yield Join(tuple(members), through, tuple(v for v in addends if v != skip), skip)

    def _ends(self, block: Block) -> tuple[Value | None, Value | None]:
        """The values at a block's boundaries, where they lead from the data to the output."""
        ends = (self.met(place).value for place in (block.input, block.output))
        start, end = (value if value in self.flow.position else None for value in ends)
        return start, end

    def _addends(self, members: Sequence[Value]) -> tuple[tuple[Value, ...], tuple[Value, ...]]:
        through, addends = {members[-1]: None}, dict[Value, None]()
        known, stack = set(members), [members[-1]]
        while stack:
            for value in self._before(stack.pop(), known):
                if value != members[0] and self._is_transparent(value):
                    through[value] = None
                    stack.append(value)
                else:
                    addends[value] = None
        return tuple(through), tuple(addends)

    def _before(self, value: Value, known: set[Value]) -> list[Value]:
        return [parent for parent in self.flow.inside(value) if parent in known]

    def _is_transparent(self, value: Value) -> bool:
        name = operation(value)
        return name in SUMS or name in VIEWS or (name in SCALES and len(self.flow.everything[value]) == 1)

    def is_layer(self, value: Value) -> bool:
        """The work of a layer with weights."""
        return self._layers.is_layer(value)

    # -- parameters --------------------------------------------------------------------------------------------------

    def acts(self, join: Join, *, weighs: bool = False) -> list[Act]:
        """The last operations with parameters on every way back into the branches, added parameters (a bias) included.

        With `weighs`, back to the last layers: norms and scales on the way count, too.
        """
        last = {*join.branches, *join.seen_through}
        return self._back(join.members[-1], set(join.members[1:]) - {join.skip}, last, weighs=weighs)

    def skip_acts(self, join: Join) -> list[Act]:
        """What acts in the skip, back to its last layer; nothing in an identity."""
        return self._back(join.skip, set(join.members[1:]), {join.skip}, weighs=True)

    def lone_act(self, block: Block) -> Act | None:
        """The layer of a block that has one, with nothing but sums, views and constant factors behind it."""
        start, end = self._ends(block)
        if start is None or end is None:
            return None
        values = self.flow.between(start, end)
        if sum(map(self.is_layer, values[1:])) != 1:
            return None
        while self._is_transparent(end) and len(before := self._before(end, set(values))) == 1:
            (end,) = before
        return next((act for act in self._back(end, {end}, {end}, weighs=True) if act.weighs), None)

    def _back(self, value: Value, known: set[Value], last: set[Value], *, weighs: bool) -> list[Act]:
        found: dict[Value, Act] = {}
        stack = [value]
        while stack:
            value = stack.pop()
            if value in found or value not in known:
                continue
            act = Act(value, self.parameters(value), value in last)
            if act.parameters:
                found[value] = act
            ends = act.parameters and operation(value) not in SUMS and (act.weighs or not weighs)
            stack += [] if ends else self._before(value, known)
        return list(found.values())

    def parameters(self, value: Value) -> dict[str, nn.Parameter]:
        """What an operation takes from parameters, directly or through computations that no data enters."""
        found: dict[str, nn.Parameter] = {}
        stack = [parent for parent in self.flow.everything[value] if parent not in self.flow.position]
        while stack:
            parent = stack.pop()
            variable = getattr(parent[0], "variable", None)
            if isinstance(variable, nn.Parameter) and id(variable) in self._names:
                found[self._names[id(variable)]] = variable
            stack += self.flow.everything[parent]
        return dict(sorted(found.items(), key=lambda item: (item[0].endswith("bias"), item[0])))

    # -- calls -------------------------------------------------------------------------------------------------------

    def is_leaf(self, call: Call) -> bool:
        """A single layer: parameterised, without parameterised calls inside."""
        return call.has_parameters and id(call) not in self._holders

    @cached_property
    def _holders(self) -> set[int]:
        return {id(call.parent) for call in self.trace.calls if call.has_parameters}

    @cached_property
    def last_layer(self) -> Call | None:
        """The single layer with weights whose work is the last on the way to the latest output."""
        found = [
            (order(met.value), call)
            for call in self.trace.calls
            for met in call.outputs
            if self.is_leaf(call) and any(p.ndim >= 2 for p in call.module.parameters())
            if met.value is not None and met.value in self.flow.position
        ]
        return max(found, key=lambda item: item[0])[1] if found else None


def is_norm(module: nn.Module) -> bool:
    """A batch, layer, group, RMS, ... norm, other people's included."""
    return "norm" in type(module).__name__.lower()
