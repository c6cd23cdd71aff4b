"""Readings along an axis from what was found at each place: a number, a number with a remark, or why there is none."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from leadline.linalg.conditioning import Condition
from leadline.probes import Reading


class Noted(NamedTuple):
    """A number that needs a word."""

    value: float
    note: str


Found = float | Noted | str


def profile(name: str, found: Sequence[Found], *, remark: str = "", empty: str = "nothing to measure") -> Reading:
    """One number for each place; a reason (str) becomes nan and a note, `remark` is the note on the whole.

    >>> profile("kappa", [2.0, "no weights"])
    Reading(name='kappa', value=[2.0, nan], notes={1: 'no weights'})
    """
    if not found:
        return missing(name, empty)
    notes = {-1: remark} if remark else {}
    values = []
    for place, item in enumerate(found):
        value, note = _parts(item)
        values.append(value)
        if note:
            notes[place] = note
    return Reading(name, values, notes)


def scalar(name: str, found: Found) -> Reading:
    """The same for a single number."""
    value, note = _parts(found)
    return Reading(name, value, {-1: note} if note else {})


def missing(name: str, why: str) -> Reading:
    return Reading(name, math.nan, {-1: why})


def _parts(item: Found) -> tuple[float, str]:
    if isinstance(item, str):
        return math.nan, item
    value, note = item if isinstance(item, Noted) else (float(item), "")
    return value, note or ("not a number" if math.isnan(value) else "")


def kappa(found: Condition | str) -> Found:
    """kappa; where directions are lost, with what was lost and the tolerance that decided it."""
    if isinstance(found, str):
        return found
    if not found.lost:
        return number(found, lambda condition: condition.kappa)
    words = f"{found}: {found.note}" if found.bounded else found.note
    return Noted(found.kappa, f"{words}; lost means at most {found.tolerance:.1e} sigma_max")


def number(found: Condition | str, pick: Callable[[Condition], float]) -> Found:
    """Another number of a condition."""
    if isinstance(found, str):
        return found
    value = float(pick(found))
    return Noted(value, found.note) if math.isnan(value) else value
