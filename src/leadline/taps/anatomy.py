"""Anatomy: the chain of blocks of any model, what skip each block has, and what could not be measured."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from math import prod
from typing import Any

from torch import nn

from leadline.core import markup
from leadline.core.errors import unknown
from leadline.core.rows import alike, grid, runs
from leadline.core.sparkline import sparkline
from leadline.taps.chain import Chain, Stretch
from leadline.taps.dataflow import Flow, Value, ancestry, operation, order
from leadline.taps.inputs import eager, understand
from leadline.taps.places import Place, Side
from leadline.taps.skips import Kind, Layers, kind, skips
from leadline.taps.trace import Call, Met, Trace, trace

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Block:
    """One piece of the chain: `input` and `output` are its boundaries, where a tape can listen.

    `lengths` has, for each of its skips in turn, the parameterised layers it spans; `modules` are the calls it is made
    of. A module that is called `calls` times makes as many blocks, and its parameters count in the first of them.
    """

    name: str
    kind: Kind
    lengths: tuple[int, ...]
    input: Place
    output: Place
    in_shape: Shape
    out_shape: Shape
    modules: tuple[str, ...]
    calls: int
    parameters: int
    note: str = ""

    @property
    def shortcut_length(self) -> int:
        """Parameterised layers on the longest branch; 0 without a skip."""
        return max(self.lengths, default=0)


@dataclass(frozen=True)
class Gap:
    """Operations between block number `after` (counted from 0) and the next that no block contains."""

    after: int
    operations: tuple[str, ...]


@dataclass(frozen=True)
class Anatomy:
    """What `anatomy` found; prints as a table."""

    model: str
    blocks: tuple[Block, ...]
    gaps: tuple[Gap, ...]
    stem: tuple[str, ...]
    head: tuple[str, ...]
    beside: tuple[str, ...]
    not_called: tuple[str, ...]
    not_measured: tuple[str, ...]
    parameters: int

    @property
    def boundaries(self) -> tuple[Place, ...]:
        """The input of the first block and the output of every block."""
        return (*(block.input for block in self.blocks[:1]), *(block.output for block in self.blocks))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def __repr__(self) -> str:
        lines = [self._title(), grid(_HEADINGS, list(self._rows()), right=_RIGHT)]
        return "\n".join([*lines, *(f"  {line}" for line in self._along())])

    __str__ = __repr__

    def _repr_html_(self) -> str:
        shown = markup.table(_HEADINGS, self._rows(), right=_RIGHT)
        return markup.block(markup.words(self._title(), strong=True), shown, markup.listing(self._along()))

    def _title(self) -> str:
        counts = Counter(block.kind for block in self.blocks)
        kinds = ", ".join(f"{number} {kind}" for kind, number in counts.items())
        blocks = "1 block" if len(self.blocks) == 1 else f"{len(self.blocks)} blocks"
        return f"{self.model}: {blocks}{f' ({kinds})' if kinds else ''}, {self.parameters:,} parameters"

    def _along(self) -> Iterable[str]:
        """What changes along depth, drawn from the first to the last block."""
        shapes = [block.in_shape for block in self.blocks[:1]] + [block.out_shape for block in self.blocks]
        courses = {"parameters": [block.parameters for block in self.blocks], "boundary sizes": list(map(prod, shapes))}
        for name, course in courses.items():
            if len(set(course)) > 1 and len(self.blocks) > FEW_ROWS:
                yield f"{name:<14}  {sparkline(course)}  {min(course):,} to {max(course):,}"

    def _rows(self) -> Iterable[tuple[str, ...]]:
        if self.stem:
            yield _remark("stem", alike(self.stem))
        gaps = {gap.after: ", ".join(gap.operations) for gap in self.gaps}
        rows = [(index, (block.name, *_words(block))) for index, block in enumerate(self.blocks)]
        for run in runs(rows, breaks=gaps) if len(rows) > MANY_ROWS else [[row] for row in rows]:
            (first, row), (last, (name, *_)) = run[0], run[-1]
            if len(run) > 1:
                row = (f"{row[0]} … {name}", *row[1:])
            yield str(first + 1) if len(run) == 1 else f"{first + 1}-{last + 1}", *row
            if last in gaps:
                yield _remark("(between)", gaps[last])
        remarks = {"head": self.head, "beside": self.beside, "not called": self.not_called}
        yield from (_remark(role, alike(names)) for role, names in remarks.items() if names)
        yield from (_remark("not measured", f"because {reason}") for reason in self.not_measured)


MANY_ROWS = 32
"""A table of more blocks than this shows neighbours that are alike in one row."""

FEW_ROWS = 2
"""Of no more blocks than this nothing is drawn."""

_RIGHT = (0, 6)
_HEADINGS = ("#", "block", "kind", "length", "in", "out", "parameters", "note")


def _remark(role: str, note: str) -> tuple[str, ...]:
    return ("", role, "", "", "", "", "", note)


def _words(block: Block) -> tuple[str, ...]:
    lengths = "+".join(map(str, block.lengths))
    return block.kind, lengths, _shape(block.in_shape), _shape(block.out_shape), f"{block.parameters:,}", block.note


def _shape(shape: Shape) -> str:
    return "x".join(map(str, shape)) or "()"


def anatomy(model: nn.Module, batch: Any, *, blocks: str | Sequence[str] | None = None) -> Anatomy:
    """Find the chain of blocks of `model` by one forward pass on `batch`; the model is left exactly as found.

    The batch is what `forward` takes (a tensor, a tuple, a dict of keywords), with or without targets after it.
    `blocks` names them instead: module names, in which `*` stands for part of one name and `**` for several.
    """
    inner = eager(model)
    found = trace(inner, understand(inner, batch))
    end = found.end()
    reading = _Reading(found, ancestry(end) if end is not None else {})
    stretches = reading.chain() if blocks is None else reading.named([blocks] if isinstance(blocks, str) else blocks)
    return reading.anatomy(stretches)


class _Reading:
    """Turns stretches of a trace into plain data."""

    def __init__(self, found: Trace, everything: dict[Value, tuple[Value, ...]]) -> None:
        self.trace, self.everything = found, everything
        self.data = Flow(everything, found.sources())
        self.layers = Layers(self.data)
        self.troubles: list[str] = []

    # -- which stretches ---------------------------------------------------------------------------------------------

    def chain(self) -> list[Stretch]:
        """The longest chain over all sources of data: each alone, then all together."""
        sources = self.trace.sources()
        choices = [[source] for source in sources] + ([sources] if len(sources) > 1 else [])
        chains = [Chain(self.trace, Flow(self.everything, choice), self.layers) for choice in choices]
        longest = max((chain.blocks() for chain in chains), key=len, default=[])
        if not longest:
            self.troubles.append(self._why_none())
        return longest

    def _why_none(self) -> str:
        if not any(call.has_parameters for call in self.trace.calls):
            return "the model has no parameters"
        if not self.everything:
            return "the model returned no tensor that depends on its parameters"
        return "no module call leads from one boundary to the next; name the blocks"

    def named(self, patterns: Sequence[str]) -> list[Stretch]:
        names = dict.fromkeys(call.name for call in self.trace.calls)
        chosen: set[str] = set()
        for pattern in patterns:
            matching = {name for name in names if _glob(pattern).fullmatch(name)}
            if not matching:
                self.troubles.append(self._not_matched(pattern, names))
            chosen |= matching
        stretches = (self._stretch(call) for call in self.trace.calls if call.name in chosen)
        return [stretch for stretch in stretches if stretch is not None]

    def _not_matched(self, pattern: str, called: Iterable[str]) -> str:
        idle = [name for name, _ in self.trace.root.module.named_modules() if _glob(pattern).fullmatch(name)]
        if not idle:
            raise unknown("blocks", pattern, [name for name in called if name])
        return f"{alike(idle)} {'was' if len(idle) == 1 else 'were'} not called"

    def _stretch(self, call: Call) -> Stretch | None:
        taken = [met.value for met in call.inputs if met.value in self.data.position]
        given = [met.value for met in call.outputs if met.value in self.data.position]
        if not taken or not given:
            side = "takes" if not taken else "returns"
            self.troubles.append(f"{call.name} {side} no tensor on the way to the model's output")
            return None
        return Stretch(max(taken, key=order), max(given, key=order), (call,))

    # -- plain data --------------------------------------------------------------------------------------------------

    def anatomy(self, stretches: Sequence[Stretch]) -> Anatomy:
        owners, counted = self._owners(), set[int]()
        blocks = tuple(self._block(stretch, owners, counted) for stretch in stretches)
        stem, head, beside = self._around(stretches)
        root = self.trace.root.module
        return Anatomy(
            model=type(root).__name__,
            blocks=blocks,
            gaps=tuple(self._gaps(stretches)),
            stem=stem,
            head=head,
            beside=beside,
            not_called=tuple(self._not_called(root)),
            not_measured=tuple(self.troubles),
            parameters=sum(parameter.numel() for parameter in root.parameters()),
        )

    def _block(self, stretch: Stretch, owners: dict[int, list[str]], counted: set[int]) -> Block:
        found = skips(self.data, stretch.start, stretch.end, self.layers)
        parameters = {id(p): p.numel() for call in stretch.calls for p in call.module.parameters()}
        fresh = sum(size for key, size in parameters.items() if key not in counted)
        notes = [
            stretch.note,
            self._hidden(stretch),
            *self._skip_notes(found),
            *self._sharing(stretch.calls, parameters, owners),
        ]
        counted.update(parameters)
        input, at_start = self._place(stretch.start, "in", stretch.calls)
        output, at_end = self._place(stretch.end, "out", stretch.calls)
        return Block(
            name=self._name(stretch.calls) or f"(code before {output})",
            kind=kind(found),
            lengths=tuple(skip.length for skip in found),
            input=input,
            output=output,
            in_shape=tuple(at_start.tensor.shape),
            out_shape=tuple(at_end.tensor.shape),
            modules=tuple(dict.fromkeys(call.name for call in stretch.calls)),
            calls=max((self.trace.times[call.name] for call in stretch.calls), default=1),
            parameters=fresh,
            note="; ".join(filter(None, notes)),
        )

    def _hidden(self, stretch: Stretch) -> str:
        """A word where the kind is not known because a custom autograd function keeps its inside to itself."""
        seen = any(map(self.layers.is_layer, self.data.between(stretch.start, stretch.end)[1:]))
        busy = any(p.ndim >= 2 for call in stretch.calls for p in call.module.parameters())
        return "kind not known because a custom function hides its inside" if busy and not seen else ""

    def _skip_notes(self, found: Iterable[Any]) -> Iterable[str]:
        through = dict.fromkeys(", ".join(skip.through) for skip in found if skip.through)
        return [f"skip through {operations}" for operations in through]

    def _sharing(self, calls: Sequence[Call], parameters: Iterable[int], owners: dict[int, list[str]]) -> Iterable[str]:
        for call in calls:
            if self.trace.times[call.name] > 1 and call.has_parameters:
                yield f"call {call.number + 1} of {self.trace.times[call.name]} of {call.name}"
        own = tuple(call.name for call in calls)
        others = {name for key in parameters for name in owners[key] if not name.startswith(own)}
        if others:
            yield f"shares parameters with {', '.join(sorted(others))}"

    def _owners(self) -> dict[int, list[str]]:
        owners: dict[int, list[str]] = {}
        for name, module in self.trace.root.module.named_modules():
            for parameter in module.parameters(recurse=False):
                owners.setdefault(id(parameter), []).append(name)
        return owners

    def _name(self, calls: Sequence[Call]) -> str:
        if not calls:
            return ""
        first, last = calls[0], calls[-1]
        name = first.name + (f"@{first.number + 1}" if self.trace.times[first.name] > 1 else "")
        many = sum(call.has_parameters for call in calls) > 1 and not self._leads(first, calls)
        return f"{name} … {last.name}" if many else name

    def _leads(self, first: Call, calls: Sequence[Call]) -> bool:
        """A layer with what belongs to it (norm, activation, pooling) goes by the layer's name alone."""
        return not any(p.ndim >= 2 for call in calls if call is not first for p in call.module.parameters())

    def _place(self, value: Value, side: Side, calls: Sequence[Call]) -> tuple[Place, Met]:
        """Where a tape meets the value: at the block's own calls if possible, else at any other, results first."""
        other: Side = "out" if side == "in" else "in"
        groups = [(calls, side), (self.trace.calls, "out"), (self.trace.calls, "in"), (calls, other)]
        for group, where in groups:
            for call in group:
                for met in call.inputs if where == "in" else call.outputs:
                    if met.value == value:
                        return self.trace.place(call, "in" if where == "in" else "out", met), met
        raise AssertionError("a boundary is always met by some call")

    def _gaps(self, stretches: Sequence[Stretch]) -> Iterable[Gap]:
        for index, (one, two) in enumerate(pairwise(stretches)):
            if one.end != two.start and self.data.position[one.end] < self.data.position[two.start]:
                between = self.data.between(one.end, two.start)[1:]
                yield Gap(index, tuple(dict.fromkeys(map(operation, between))) or ("not connected",))

    def _around(self, stretches: Sequence[Stretch]) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """Parameterised calls outside the blocks: before the first one, after the last one, and beside them."""
        place = {id(call): index for index, call in enumerate(self.trace.calls)}
        inside = {id(call) for stretch in stretches for call in stretch.calls}
        holders = {id(outer) for stretch in stretches for call in stretch.calls for outer in call.around()}
        first, last = (f(map(place.__getitem__, inside)) if inside else -1 for f in (min, max))
        roles: tuple[dict[str, None], ...] = ({}, {}, {})
        for index, call in enumerate(self.trace.calls):
            known = id(call) in holders or id(call) in inside or any(id(outer) in inside for outer in call.around())
            if not known and call.has_parameters:
                inside.add(id(call))
                roles[0 if index < first else 1 if index > last else 2][call.name or "(model)"] = None
        return tuple(roles[0]), tuple(roles[1]), tuple(roles[2])

    def _not_called(self, root: nn.Module) -> Iterable[str]:
        """The outermost modules with parameters in which nothing was called."""
        busy = {""}
        for call in self.trace.calls:
            parts = call.name.split(".")
            busy |= {".".join(parts[:length]) for length in range(1, len(parts) + 1)}
        used = {id(getattr(node, "variable", None)) for node, _ in self.everything}
        for name, module in root.named_modules():
            parameters = [id(parameter) for parameter in module.parameters()]
            if name not in busy and name.rpartition(".")[0] in busy and parameters:
                yield f"{name} (its parameters are used)" if used >= set(parameters) else name


def _glob(pattern: str) -> re.Pattern[str]:
    """`*` is anything within one name, `**` anything at all, `?` one character.

    >>> bool(_glob("layer*.*").fullmatch("layer1.0")), bool(_glob("layer*.*").fullmatch("layer1.0.conv1"))
    (True, False)
    """
    parts = {"**": ".*", "*": r"[^.]*", "?": r"[^.]"}
    return re.compile("".join(parts.get(part, re.escape(part)) for part in re.split(r"(\*\*|\*|\?)", pattern)))
