"""Why numbers are missing or infinite: every reason said once, with all that it goes for."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

NAMED = 3
"""How many places or readings with the same reason are named."""

_NUMBER = re.compile(r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?(?![\w.])")


class Noted(NamedTuple):
    """A number without a finite value, of a reading of a probe at a place (empty if it has none), and the reason."""

    probe: str
    name: str
    place: str
    value: float
    note: str


@dataclass
class _Group:
    names: dict[str, None] = field(default_factory=dict)
    places: dict[str, None] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)


def remarks(found: Iterable[Noted], *, names: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """One line a reason; `names` has the readings of each probe that have places, to tell all of them from some."""
    groups: dict[tuple[str, str, str, bool], _Group] = {}
    for each in found:
        what = "not measured" if math.isnan(each.value) else "infinite"
        key = (what, each.probe, _NUMBER.sub("#", each.note), bool(each.place))
        group = groups.setdefault(key, _Group())
        group.names[each.name], group.notes[each.note] = None, None
        group.places |= {each.place: None} if each.place else {}
    for (what, probe, _, _), group in groups.items():
        whole = group.places and group.names.keys() >= set(names.get(probe, ()))
        of = probe if whole else f"{probe}/{few(group.names)}"
        where = f" at {few(group.places)}" if group.places else ""
        yield f"{what}: {of}{where}, because {spanned(list(group.notes))}"


def few(items: Iterable[str]) -> str:
    """The first few by name, the others by their number.

    >>> few("abcde")
    'a, b, c and 2 more'
    """
    known = list(items)
    return ", ".join(known[:NAMED]) + (f" and {len(known) - NAMED} more" if len(known) > NAMED else "")


def spanned(notes: Sequence[str]) -> str:
    """Notes that differ only in their numbers as one.

    >>> spanned(["9 features on 2 samples", "17 features on 2 samples"])
    '9 to 17 features on 2 samples'
    """
    columns = zip(*(_NUMBER.findall(note) for note in notes), strict=True)
    spans = iter([_span(set(column)) for column in columns])
    return _NUMBER.sub(lambda _: next(spans), notes[0])


def _span(numbers: set[str]) -> str:
    ordered = sorted(numbers, key=lambda number: float(number.replace(",", "")))
    return ordered[0] if len(ordered) == 1 else f"{ordered[0]} to {ordered[-1]}"
