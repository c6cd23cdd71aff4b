"""The chain of blocks in a traced forward pass: finest pieces between cuts, at the level of what repeats."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Literal

from torch import nn

from leadline.taps.dataflow import Flow, Value, cuts, operation
from leadline.taps.skips import SUMS, Layers
from leadline.taps.trace import Call, Trace

MANY = 3
"""How many parameterised layers a block of a network without skips may have, and how many pieces make a container of a
module that is called once."""


_LATE = 1 << 60


@dataclass(frozen=True)
class Stretch:
    """What becomes a block: from one value to another through some calls, a note if that needs a word."""

    start: Value
    end: Value
    calls: tuple[Call, ...]
    note: str = ""


@dataclass(frozen=True)
class Piece:
    """A stretch of the chain from boundary `start` to `end` (indices of cuts).

    unit: a module call that cannot or should not be split; layer: one parameterised layer; open: layers joined by the
    code between modules; free: nothing parameterised.
    """

    sort: Literal["unit", "layer", "open", "free"]
    start: int
    end: int
    calls: tuple[Call, ...] = ()


class Chain:
    """The pieces between the cuts of one flow through a trace."""

    def __init__(self, trace: Trace, flow: Flow, layers: Layers) -> None:
        self.trace, self.flow, self.layers = trace, flow, layers
        met = {met.value for call in trace.calls for met in (*call.inputs, *call.outputs)}
        self.cuts = [value for value in flow.cuts if value in met]
        self._index = {value: index for index, value in enumerate(self.cuts)}
        self._parents = {id(call.parent) for call in trace.calls if call.has_parameters}
        self._spans = {id(call): span for call in trace.calls if (span := self._span(call)) is not None}
        self._drop_cuts_inside_leaves()

    # -- spans -------------------------------------------------------------------------------------------------------

    def _span(self, call: Call) -> tuple[int, int] | None:
        """(i, j): the call takes cut i and nothing else of the flow, and gives cut j; None if that is not so."""
        taken = {met.value for met in call.inputs if met.value in self.flow.position}
        given = [self._index[met.value] for met in call.outputs if met.value in self._index]
        if len(taken) != 1 or not taken <= self._index.keys() or not given:
            return None
        start = self._index[next(iter(taken))]
        return (start, max(given)) if max(given) > start else None

    def span(self, call: Call) -> tuple[int, int] | None:
        return self._spans.get(id(call))

    def is_leaf(self, call: Call) -> bool:
        """Parameterised, without parameterised calls inside."""
        return call.has_parameters and id(call) not in self._parents

    def _drop_cuts_inside_leaves(self) -> None:
        """What happens inside a single layer (an activation module within a norm) is not a boundary."""
        hidden = {
            index
            for call in self.trace.calls
            if self.is_leaf(call) and (span := self.span(call))
            for index in range(span[0] + 1, span[1])
        }
        self.cuts = [value for index, value in enumerate(self.cuts) if index not in hidden]
        self._index = {value: index for index, value in enumerate(self.cuts)}
        self._spans = {id(call): span for call in self.trace.calls if (span := self._span(call)) is not None}

    def calls_between(self, start: int, end: int) -> list[Call]:
        """The outermost calls that take and give nothing but what lies between two cuts."""
        low, high = (self.flow.position[self.cuts[index]] for index in (start, end))
        first, last = (bisect_right(self._results, (place, _LATE, _LATE, _LATE)) for place in (low, high))
        inside = sorted(
            index for _, latest, taken, index in self._results[first:last] if low <= taken <= latest <= high
        )
        calls = [self.trace.calls[index] for index in inside]
        known = set(map(id, calls))
        return [call for call in calls if not any(id(outer) in known for outer in call.around())]

    @cached_property
    def _results(self) -> list[tuple[int, int, int, int]]:
        """Where in the flow each call's earliest and latest results and earliest inputs are, and its index; sorted."""
        found = []
        for index, call in enumerate(self.trace.calls[1:], start=1):
            taken, given = (
                [self.flow.position[met.value] for met in side if met.value in self.flow.position]
                for side in (call.inputs, call.outputs)
            )
            if given:
                found.append((min(given), max(given), min(taken, default=min(given)), index))
        return sorted(found)

    # -- elementary pieces -------------------------------------------------------------------------------------------

    @cached_property
    def elements(self) -> list[Piece]:
        """The finest pieces, one between every two neighbouring cuts."""
        exact: dict[tuple[int, int], list[Call]] = {}
        for call in self.trace.calls[1:]:
            if span := self.span(call):
                exact.setdefault(span, []).append(call)
        return [self._element(index, exact.get((index, index + 1), [])) for index in range(len(self.cuts) - 1)]

    def _element(self, index: int, calls: Sequence[Call]) -> Piece:
        leaf = [call for call in calls if self.is_leaf(call)]
        busy = [call for call in calls if call.has_parameters]
        if leaf:
            return Piece("layer", index, index + 1, (leaf[-1],))
        if busy:
            return Piece("unit", index, index + 1, (busy[-1],))
        sort: Literal["open", "free"] = "open" if self._works(index) else "free"
        return Piece(sort, index, index + 1, tuple(calls[-1:]) or tuple(self.calls_between(index, index + 1)))

    @cached_property
    def _work(self) -> list[int]:
        """How many values up to each place of the flow are the work of layers or results of parameterised calls."""
        given = {met.value for call in self.trace.calls if self.is_leaf(call) for met in call.outputs}
        total, sums = 0, []
        for value in self.flow.values:
            total += value in given or self.layers.is_layer(value)
            sums.append(total)
        return sums

    def _works(self, index: int) -> bool:
        low, high = (self.flow.position[self.cuts[place]] for place in (index, index + 1))
        return self._work[high] > self._work[low]

    # -- units -------------------------------------------------------------------------------------------------------

    @cached_property
    def composites(self) -> list[Call]:
        """Calls, other than the model's own, that contain parameterised calls and lead from cut to cut."""
        calls = self.trace.calls[1:]
        return [call for call in calls if self.span(call) and call.has_parameters and not self.is_leaf(call)]

    @cached_property
    def units(self) -> list[Call]:
        """The smallest modules around every join of the graph, and all other calls of the same classes."""
        found = [call for element in self.elements if (call := self._around(element)) is not None]
        classes = {type(call.module) for call in found} - {nn.Sequential, nn.ModuleList}
        same = [call for call in self.composites if type(call.module) in classes]
        return self._outermost([*found, *same])

    def _around(self, element: Piece) -> Call | None:
        if element.sort not in ("unit", "open"):
            return None
        around = [(j - i, -place, call) for place, call, (i, j) in self._composite_spans if i <= element.start < j]
        if not around:
            return None
        call = min(around)[2]  # the smallest; of equal ones the innermost, which began last
        return None if self._is_container(call) else call

    @cached_property
    def _composite_spans(self) -> list[tuple[int, Call, tuple[int, int]]]:
        return [(place, call, self._spans[id(call)]) for place, call in enumerate(self.composites)]

    def _is_container(self, call: Call) -> bool:
        start, end = self._spans[id(call)]
        pieces = sum(element.sort != "free" for element in self.elements[start:end])
        return pieces >= MANY and sum(type(other.module) is type(call.module) for other in self.trace.calls) == 1

    def _outermost(self, calls: Iterable[Call]) -> list[Call]:
        """Disjoint spans in order: of overlapping ones the widest stays."""
        widest = sorted(dict.fromkeys(calls), key=lambda c: self._spans[id(c)][0] - self._spans[id(c)][1])
        taken: set[int] = set()
        found = []
        for call in widest:
            places = set(range(*self._spans[id(call)]))
            if not places & taken:
                found.append(call)
                taken |= places
        return sorted(found, key=lambda call: self._spans[id(call)])

    @cached_property
    def repeated(self) -> list[Call]:
        """In a chain without joins: the largest modules of a few layers of which there are several alike."""
        alike = Counter(_signature(call.module) for call in self.composites)
        several = [call for call in self.composites if alike[_signature(call.module)] > 1]
        return self._outermost(call for call in several if self._layers_inside[id(call)] <= MANY)

    # -- pieces ------------------------------------------------------------------------------------------------------

    def pieces(self, units: Sequence[Call]) -> list[Piece]:
        """The chain with every unit as one piece and elementary pieces between them."""
        starts = {self._spans[id(call)][0]: call for call in units}
        found, index = [], 0
        while index < len(self.elements):
            call = starts.get(index)
            piece = self.elements[index] if call is None else Piece("unit", *self._spans[id(call)], (call,))
            found.append(piece)
            index = piece.end
        return found

    def weight(self, pieces: Iterable[Piece]) -> int:
        """How many calls of single parameterised layers the pieces are made of."""
        inside = self._count_inside(self.is_leaf)
        return sum(max(1, sum(inside[id(call)] for call in p.calls)) for p in pieces if p.sort != "free")

    @cached_property
    def _layers_inside(self) -> Counter[int]:
        return self._count_inside(lambda call: self.is_leaf(call) and self._has_weight(call))

    def _count_inside(self, what: Callable[[Call], bool]) -> Counter[int]:
        """How many of these calls happened within each call, itself included."""
        return Counter(id(outer) for call in self.trace.calls if what(call) for outer in (call, *call.around()))

    def blocks(self) -> list[Stretch]:
        """What to measure, in order: from the first to the last piece at the level of repeated blocks."""
        pieces = self._level()
        bypassed = [piece for piece in pieces if self._is_bypassed(piece)]
        if not bypassed:
            return [self._stretch(piece) for piece in pieces]
        way = self._route(bypassed[0])
        first, last = (self.flow.position[value] for value in (way[0].start, way[-1].end))
        stretches = [self._stretch(piece) for piece in pieces]
        before = [stretch for stretch in stretches if self.flow.position[stretch.end] <= first]
        after = [stretch for stretch in stretches if self.flow.position[stretch.start] >= last]
        return [*before, *way, *after]

    def _level(self) -> list[Piece]:
        pieces = self.pieces(self.units)
        joined = [piece for piece in pieces if piece.sort in ("unit", "open")]
        if 2 * self.weight(joined) < self.weight(pieces):
            several = self.pieces([*self.units, *self._clear_of(self.repeated, self.units)])
            joined = [piece for piece in several if piece.sort in ("unit", "open")]
            if 2 * self.weight(joined) < self.weight(several):
                return self._layers(pieces)
            pieces = several
        if not joined:
            return []
        if any(self._is_bypassed(piece) for piece in joined):
            return self._tidy(pieces)
        first, last = pieces.index(joined[0]), pieces.index(joined[-1])
        return self._tidy(pieces[first : last + 1])

    def _stretch(self, piece: Piece) -> Stretch:
        start, end = self.cuts[piece.start], self.cuts[piece.end]
        if piece.sort != "open":
            return Stretch(start, end, piece.calls)
        calls = tuple(call for call in piece.calls if call.has_parameters) or piece.calls
        inner = cuts(self.flow.between(start, end), self.flow.everything)[1:-1] if len(calls) > 1 else []
        hidden = sum(operation(value) in SUMS for value in inner)
        return Stretch(start, end, calls, f"not split because no module meets {hidden} sums inside" if hidden else "")

    def _route(self, piece: Piece) -> list[Stretch]:
        """The way through the calls made by the code that carries values past this piece."""
        host = min((call.parent for call in piece.calls if call.parent), key=lambda host: len(list(host.around())))
        calls = [call for call in self.trace.calls if call.parent is host and call.has_parameters]
        known = set(self.cuts)
        way = route(self.flow, calls)
        kinds = [re.sub(r"\d+", "*", stretch.calls[0].name) for stretch in way]
        repeated = [index for index, kind in enumerate(kinds) if kinds.count(kind) > 1] or [0, len(way) - 1]
        note = "values also pass it by"
        return [
            stretch if {stretch.start, stretch.end} <= known else replace(stretch, note=note)
            for stretch in way[repeated[0] : repeated[-1] + 1]
        ]

    def _is_bypassed(self, piece: Piece) -> bool:
        """Open because values are carried past many modules: concatenated as in a U-Net, or read by a head each."""
        if piece.sort != "open" or len(piece.calls) < MANY:
            return False
        inner = self.flow.between(self.cuts[piece.start], self.cuts[piece.end])
        place = {value: index for index, value in enumerate(inner)}
        given = [place[m.value] for c in piece.calls if not self.is_leaf(c) for m in c.outputs if m.value in place]
        for first, last in pairwise(cuts(inner, self.flow.everything)):
            low, high = place[first], place[last]
            many = sum(low < index <= high for index in given) >= MANY
            if len(self.flow.inside(last)) > 1 and (many or operation(last) == "cat"):
                return True
        return False

    def _clear_of(self, calls: Iterable[Call], units: Iterable[Call]) -> list[Call]:
        taken = {place for unit in units for place in range(*self._spans[id(unit)])}
        return [call for call in calls if not taken & set(range(*self._spans[id(call)]))]

    def _layers(self, pieces: Sequence[Piece]) -> list[Piece]:
        """Every layer with what follows it, up to the next layer, as one piece."""
        found: list[Piece] = []
        for piece in pieces:
            if piece.sort in ("unit", "open") or (piece.sort == "layer" and self._has_weight(piece.calls[0])):
                found.append(piece)
            elif found and found[-1].sort == "layer":
                last = found[-1]
                found[-1] = Piece("layer", last.start, piece.end, (*last.calls, *piece.calls))
        return found

    def _has_weight(self, call: Call) -> bool:
        return any(parameter.ndim >= 2 for parameter in call.module.parameters())

    def _tidy(self, pieces: Sequence[Piece]) -> list[Piece]:
        """Single layers between the blocks gathered into the module that holds exactly them."""
        single = [piece for piece in pieces if piece.sort in ("layer", "free")]
        loose = {place for piece in single for place in range(piece.start, piece.end)}
        inside = (c for c in self.composites if set(range(*self._spans[id(c)])) <= loose)
        units = [piece.calls[0] for piece in pieces if piece.sort == "unit"]
        first, last = pieces[0].start, pieces[-1].end
        gathered = self.pieces([*units, *self._outermost(inside)])
        return [piece for piece in gathered if first <= piece.start and piece.end <= last and piece.sort != "free"]


def route(flow: Flow, calls: Sequence[Call]) -> list[Stretch]:
    """The longest way through these calls, each depending on the one before; other values may join or pass by."""
    given = {met.value: call for call in calls for met in call.outputs if met.value in flow.position}
    best: dict[Value, tuple[tuple[Call, Value], ...]] = {}  # the longest way so far to a value: calls and their inputs
    for value in flow.values:
        call = given.get(value)
        before = [met.value for met in call.inputs] if call else flow.inside(value)
        longest = max((b for b in before if b in best), key=lambda b: len(best[b]), default=None)
        best[value] = best[longest] if longest is not None else ()
        if call is not None and longest is not None:
            best[value] = (*best[value], (call, longest))
    last = max((value for value in given if value is not None), key=lambda value: len(best[value]))
    outputs = {id(call): value for value, call in given.items() if value is not None}
    return [Stretch(start, outputs[id(call)], (call,)) for call, start in best[last]]


def _signature(module: nn.Module) -> tuple[object, ...]:
    """Alike: the same class, or for plain containers the same classes inside."""
    inside = tuple(_signature(child) for child in module.children()) if isinstance(module, nn.Sequential) else ()
    return (type(module), *inside)
