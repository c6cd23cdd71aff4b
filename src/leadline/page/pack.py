"""Readings in few bytes: numbers of one probe that were read at the same steps become one compressed block.

A number is kept as the upper bits of its double: sign, exponent and the first `bits` of the fraction, rounded, which
is exact to one part in 2^(bits+1) at any size; infinities and nan stay what they are. Whole numbers stay exact. Of
these codes the differences from step to step (in the first step: from place to place) are folded to 0, -1, 1, -2, ...
-> 0, 1, 2, 3, ..., split into planes of bytes, lowest first, and deflated. files/store.js is the reverse.
"""

import base64
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.store.reader import Reading

Numbers = NDArray[np.float64]
Codes = NDArray[np.int32]

FINE = 20
"""Bits of the fraction where there is room: six significant digits."""
LADDER = ((400_000, FINE), (1_500_000, 12))
"""Up to so many numbers in a page, so many bits; above, COARSE, which is within 0.4 %."""
COARSE = 7
ROOTS = 63
"""Shares in a histogram are coarsely kept as their square roots in so many steps."""
LARGEST = 1 << 30
SPECIAL = {"nan": (1 << 31) - 1, "inf": (1 << 31) - 2, "-inf": -(1 << 31) + 2}


@dataclass
class Course:
    """One reading of a probe at all steps it was taken: `values` has a number, or one for each place, a step."""

    probe: str
    name: str
    steps: list[int] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    notes: list[Mapping[str, str]] = field(default_factory=list)

    @property
    def places(self) -> int:
        """How many numbers a step; 0 for a scalar."""
        return len(self.values[0]) if isinstance(self.values[0], list) else 0

    def numbers(self) -> Numbers:
        """(steps, places), with one place for a scalar."""
        try:
            found = np.array(self.values, dtype=np.float64)
        except ValueError:
            found = np.array([[float(v) for v in (row if isinstance(row, list) else [row])] for row in self.values])
        return found.reshape(len(self.steps), -1)


def courses(lines: Sequence[Reading]) -> list[Course]:
    """The readings by probe and name; one that changed its number of places goes on as another."""
    found: dict[tuple[str, str, int], Course] = {}
    for line in lines:
        value = line["value"]
        places = len(value) if type(value) is list else -1
        key = (line["probe"], line["name"], places)
        course = found.get(key)
        if course is None:
            course = found[key] = Course(line["probe"], line["name"])
        course.steps.append(line["step"])
        course.values.append(value)
        course.notes.append(line.get("notes") or {})
    return [course for key, course in found.items() if key[2]]


def precision(count: int) -> int:
    """Bits of the fraction for a page with so many numbers."""
    return next((bits for most, bits in LADDER if count <= most), COARSE)


def pack(found: Sequence[Course], *, bits: int) -> Iterator[dict[str, Any]]:
    """Blocks for files/store.js: probe, names, steps, places, kind, notes, and `data` in base64."""
    groups: dict[tuple[Any, ...], list[tuple[Course, Numbers]]] = {}
    for course in found:
        values = course.numbers()
        key = (course.probe, course.places, kind(course.name, values, bits), tuple(course.steps))
        groups.setdefault(key, []).append((course, values))
    for (probe, places, what, steps), members in groups.items():
        codes = np.concatenate([encode(values, what, bits) for _, values in members])
        yield {
            "probe": probe,
            "names": [course.name for course, _ in members],
            "steps": list(steps),
            "places": places,
            "kind": what,
            "bits": bits,
            "notes": [notes(course) for course, _ in members],
            **squeeze(codes, len(steps)),
        }


def kind(name: str, values: Numbers, bits: int) -> str:
    """How the numbers are kept: as whole ones, as square roots of shares, or as the upper bits of doubles."""
    if bits == COARSE and name.startswith("histogram/") and float(np.nanmin(values, initial=0.0)) >= 0:
        return "root"
    sample = values[:, :8]
    if not np.array_equal(sample, np.rint(sample), equal_nan=True):
        return "float"
    known = values[np.isfinite(values)]
    whole = np.array_equal(known, np.rint(known)) and not np.any(np.abs(known) >= LARGEST)
    return "whole" if whole else "float"


def encode(values: Numbers, kind: str, bits: int) -> Codes:
    """(steps, places) of integers."""
    if kind == "float":
        return upper(values, bits)
    with np.errstate(invalid="ignore"):
        scaled = np.sqrt(values) * ROOTS if kind == "root" else values
        codes = np.rint(np.nan_to_num(scaled)).clip(-LARGEST, LARGEST).astype(np.int32)
    for special, code in SPECIAL.items():
        codes[_is(values, special)] = code
    return codes


def _is(values: Numbers, special: str) -> NDArray[np.bool_]:
    return np.isnan(values) if special == "nan" else values == float(special)


def upper(values: Numbers, bits: int) -> Codes:
    """Sign, exponent and `bits` of the fraction, in the order of the numbers themselves."""
    shift = 52 - bits
    whole = values.view(np.uint64)
    magnitude = ((whole & np.uint64((1 << 63) - 1)) + np.uint64(1 << (shift - 1))) >> np.uint64(shift)
    signed = magnitude.astype(np.int32)
    return np.where(values < 0, -signed, signed)


def squeeze(codes: Codes, steps: int) -> dict[str, Any]:
    """The codes of one or more courses, (courses x steps, places), as deflated planes of bytes."""
    cube = codes.reshape(-1, steps, codes.shape[1])
    change = cube.copy()
    change[:, 1:] -= cube[:, :-1]
    change[:, 0, 1:] -= cube[:, 0, :-1]
    folded = ((change << 1) ^ (change >> 31)).reshape(-1).view(np.uint32)
    count = max(1, -(-int(folded.max(initial=0)).bit_length() // 8))
    planes = np.ascontiguousarray(folded.astype("<u4").view(np.uint8).reshape(-1, 4).T[:count])
    return {"planes": count, "data": base64.b64encode(zlib.compress(planes.tobytes(), 6)).decode()}


def notes(course: Course) -> list[dict[str, Any]]:
    """What is to be said about the numbers: the text, the places (-1: all), and at which of its steps, if not all."""
    told: dict[tuple[str, tuple[int, ...]], list[int]] = {}
    for index, each in enumerate(course.notes):
        places: dict[str, list[int]] = {}
        for place, text in each.items():
            places.setdefault(text, []).append(int(place))
        for text, where in places.items():
            told.setdefault((text, tuple(where)), []).append(index)
    return [
        {"text": text, "places": list(where)} | ({} if len(at) == len(course.steps) else {"at": at})
        for (text, where), at in told.items()
    ]
