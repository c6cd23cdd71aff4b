"""Reading run folders: finished, growing or broken off; a torn or damaged line is reported, never fatal."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from leadline.core.errors import UnreadableError
from leadline.core.table import Table
from leadline.store.layout import RunFolder, State, read_json

COLUMNS = ("step", "probe", "name", "block", "value", "note")
CHUNK = 1 << 24
LONGEST_LINE = 1 << 26
_PLACE = re.compile(r"-1|\d{1,9}")

Reading = dict[str, Any]


@dataclass
class Follower:
    """Follows one run's readings from an offset; every call returns what was added since the last."""

    folder: RunFolder
    offset: int = 0
    notes: list[str] = field(default_factory=list)

    def poll(self, *, most: int | None = None) -> Table:
        """The readings whose lines were completed since the last call; a torn last line waits for its end."""
        return to_table(self.lines(most=most))

    def lines(self, *, most: int | None = None) -> list[Reading]:
        """The same, one dict a line: step, probe, name, value."""
        found: list[Reading] = []
        for block in self._whole_lines(most):
            found.extend(self._parse(block))
        return found

    def _whole_lines(self, most: int | None) -> Iterable[bytes]:
        try:
            with self.folder.readings.open("rb") as handle:
                size = handle.seek(0, 2)
                if size < self.offset:
                    self.notes.append(f"readings were cut from {self.offset} to {size} bytes; read again from there")
                    self.offset = size
                    return
                stop = size if most is None else min(size, self.offset + most)
                while self.offset < stop:
                    handle.seek(self.offset)
                    block = handle.read(CHUNK)
                    end = block.rfind(b"\n") + 1
                    if not end and len(block) == CHUNK:
                        block, end = self._long_line(handle, block)
                    if not end:
                        return
                    self.offset += end
                    yield block[:end]
        except FileNotFoundError:
            return
        except OSError as error:
            raise UnreadableError(f"cannot read {self.folder.readings}: {error.strerror}") from None

    def _long_line(self, handle: BinaryIO, block: bytes) -> tuple[bytes, int]:
        """The line that does not fit a chunk, with its length (0 while it grows); b"" beyond any reading's size."""
        length = len(block)
        while more := handle.read(CHUNK):
            end = more.find(b"\n") + 1
            length += end or len(more)
            block = block + more if length <= LONGEST_LINE else b""
            if end and length > LONGEST_LINE:
                self.notes.append(f"a line of {length} bytes at byte {self.offset} was skipped")
            if end:
                return block, length
        return b"", 0

    def _parse(self, block: bytes) -> list[Reading]:
        if not block:
            return []
        try:
            found: list[Reading] = json.loads(b"[" + block[:-1].replace(b"\n", b",") + b"]")
            if all(map(_is_reading, found)):
                return found
        except (ValueError, RecursionError):
            pass
        return self._parse_each(block)

    def _parse_each(self, block: bytes) -> list[Reading]:
        found, bad = [], 0
        for text in block.splitlines():
            try:
                reading = json.loads(text)
            except (ValueError, RecursionError):
                bad += 1
                continue
            if _is_reading(reading):
                found.append(reading)
            else:
                bad += 1
        self.notes.append(f"{bad} damaged line{'s' if bad > 1 else ''} before byte {self.offset} left out")
        return found


def _is_reading(reading: Any) -> bool:
    try:
        if not (type(reading["step"]) is int and type(reading["probe"]) is str and type(reading["name"]) is str):
            return False
        value = reading["value"]
        if len(reading) > 4 and not _are_notes(reading.get("notes", {})):
            return False
    except (KeyError, TypeError, IndexError):
        return False
    kind = type(value)
    if kind is float or kind is int:
        return True
    return all(map(_is_number, value)) if kind is list else _is_number(value)


def _are_notes(notes: Any) -> bool:
    return type(notes) is dict and all(type(note) is str and _PLACE.fullmatch(place) for place, note in notes.items())


def _is_number(value: Any) -> bool:
    return type(value) is float or type(value) is int or value in ("inf", "-inf", "nan")


def to_table(readings: list[Reading]) -> Table:
    """The readings in tidy form: one row a number; `block` counts along the profile, -1 for a scalar.

    `note` says why a number is missing; a note on a whole profile stands at each of its numbers.
    """
    values = [reading["value"] for reading in readings]
    lengths = np.array([len(value) if type(value) is list else -1 for value in values], dtype=np.int64)
    counts = np.where(lengths < 0, 1, lengths)
    if (lengths < 0).all():
        flat = values
    else:
        flat = [item for value in values for item in (value if type(value) is list else (value,))]
    starts = np.repeat(np.cumsum(counts) - counts, counts)
    block = np.where(np.repeat(lengths, counts) < 0, -1, np.arange(len(flat)) - starts)
    texts = {name: np.array([reading[name] for reading in readings], dtype=object) for name in ("probe", "name")}
    steps = np.fromiter((reading["step"] for reading in readings), dtype=np.int64, count=len(readings))
    return Table(
        step=np.repeat(steps, counts),
        probe=np.repeat(texts["probe"], counts),
        name=np.repeat(texts["name"], counts),
        block=block,
        value=np.fromiter(map(float, flat), dtype=np.float64, count=len(flat)),
        note=_note_column(readings, np.cumsum(counts) - counts, counts),
    )


def _note_column(readings: list[Reading], starts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.object_]:
    column = np.full(int(counts.sum()), "", dtype=object)
    for k, reading in enumerate(readings):
        if len(reading) > 4:
            for place, note in reading.get("notes", {}).items():
                if int(place) < 0:
                    column[starts[k] : starts[k] + counts[k]] = note
                elif int(place) < counts[k]:
                    column[starts[k] + int(place)] = note
    return column


@dataclass(frozen=True)
class Run:
    """A run folder as it was found: description, outcome (None while it is not done), readings, notes."""

    folder: RunFolder
    state: State
    record: dict[str, Any]
    outcome: dict[str, Any] | None
    readings: Table
    notes: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.folder.path.name


def read(path: Path) -> Run:
    """Everything a run folder says now."""
    folder = RunFolder(path)
    record = read_json(folder.run_json, what="the description of a run")
    state = folder.state()
    outcome = read_json(folder.done_json, what="the outcome of a run") if state == "done" else None
    follower = Follower(folder)
    readings = follower.poll()
    notes = list(follower.notes)
    if folder.readings.exists() and state != "growing" and (torn := folder.readings.stat().st_size - follower.offset):
        notes.append(f"a torn last line of {torn} bytes was dropped")
    return Run(folder, state, record, outcome, readings, tuple(notes))
