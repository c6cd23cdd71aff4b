"""What skips a stretch of the graph has: found from the operations autograd recorded, never from class names."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from leadline.taps.dataflow import Flow, Value, cuts, operation

Kind = Literal["plain", "identity", "transition"]

SUMS = frozenset({"add", "sub"})
SCALES = frozenset({"mul", "div", "neg"})
VIEWS = frozenset(
    {"view", "reshape", "flatten", "unflatten", "squeeze", "unsqueeze", "permute", "transpose", "t", "alias"}
    | {"clone", "copy", "tocopy", "contiguous"}
)


@dataclass(frozen=True)
class Skip:
    """A sum of several paths: `length` parameterised layers on the longest, `through` what the shortest passes."""

    length: int
    through: tuple[str, ...] = ()


class Layers:
    """Which values are the work of a parameterised layer: an operation on a weight of two or more dimensions."""

    def __init__(self, data: Flow) -> None:
        """`data`: the flow from every source of data, so that what is outside it comes from parameters alone."""
        self._data = data
        self._weights: dict[Value, bool] = {}

    def is_layer(self, value: Value) -> bool:
        """Adding or scaling by a parameter (a position embedding, a layer scale) does not make a layer."""
        if operation(value) in SUMS | SCALES | {"cat"}:
            return False
        outside = (parent for parent in self._data.everything[value] if parent not in self._data.position)
        return any(self._is_weight(parent) for parent in outside)

    def _is_weight(self, value: Value) -> bool:
        if value not in self._weights:
            variable = getattr(value[0], "variable", None)
            parents = self._data.everything[value]
            self._weights[value] = (variable is not None and variable.ndim >= 2) or any(map(self._is_weight, parents))
        return self._weights[value]

    def depth(self, flow: Flow, values: Sequence[Value]) -> dict[Value, int]:
        """The largest number of layers on a path from the first of `values` to each of them."""
        depth = {values[0]: 0}
        for value in values[1:]:
            before = [depth[parent] for parent in flow.inside(value) if parent in depth]
            depth[value] = max(before, default=0) + self.is_layer(value)
        return depth


def skips(flow: Flow, start: Value, end: Value, layers: Layers) -> list[Skip]:
    """The skips met one after the other on the way from `start` to `end`; each spans at least one layer.

    What comes before the first sum is part of its skip (a projection of the pre-activated tensor, a shared batch norm);
    what comes after a sum (a ReLU, a post-norm) is not.
    """
    values = flow.between(start, end)
    if not values:
        return []
    place = {value: index for index, value in enumerate(values)}
    found: list[Skip] = []
    lead: tuple[str, ...] = ()
    for first, last in pairwise(cuts(values, flow.everything)):
        inner = values[place[first] : place[last] + 1]
        skip = _skip(flow, inner, layers)
        if skip is not None:
            found.append(Skip(skip.length, skip.through if found else (*lead, *skip.through)))
        elif not found:
            lead += _operations(flow, inner[1:])
    return found


def kind(found: Sequence[Skip]) -> Kind:
    """plain: no skip; identity: every skip is sums, views and copies only; transition: one passes something else.

    >>> kind([]), kind([Skip(2)]), kind([Skip(2), Skip(3, ("convolution",))])
    ('plain', 'identity', 'transition')
    """
    if not found:
        return "plain"
    return "transition" if any(skip.through for skip in found) else "identity"


def _skip(flow: Flow, inner: Sequence[Value], layers: Layers) -> Skip | None:
    start, end, members = inner[0], inner[-1], set(inner)
    if operation(end) not in SUMS:
        return None
    depth = layers.depth(flow, inner)
    addends = _addends(flow, end, members)
    if len(addends) < 2 or depth[end] == 0:
        return None
    if start in addends:
        return Skip(depth[end])
    shortest = min(addends, key=lambda value: (depth[value], len(flow.between(start, value))))
    return Skip(depth[end], _operations(flow, flow.between(start, shortest)[1:]))


def _addends(flow: Flow, end: Value, members: set[Value]) -> list[Value]:
    """What a sum adds up, seen through nested sums, views, copies and constant factors."""
    found: dict[Value, None] = {}
    stack, seen = [end], {end}
    while stack:
        for parent in flow.inside(stack.pop()):
            if parent in members and parent not in seen:
                seen.add(parent)
                if _is_transparent(flow, parent) and any(before in members for before in flow.inside(parent)):
                    stack.append(parent)
                else:
                    found[parent] = None
    return list(found)


def _is_transparent(flow: Flow, value: Value) -> bool:
    name = operation(value)
    return name in SUMS or name in VIEWS or (name in SCALES and len(flow.everything[value]) == 1)


def _operations(flow: Flow, values: Sequence[Value]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(operation(value) for value in values if not _is_transparent(flow, value)))
