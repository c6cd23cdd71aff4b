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
TAIL = 256
"""So many bytes before the position tell whether a file is still the one that was read."""
LARGEST_STEP = 1 << 53
_PLACE = re.compile(r"-1|\d{1,9}")

Reading = dict[str, Any]


@dataclass
class Follower:
    """Follows one run's readings from an offset; every call returns what was added since the last.

    `offset` is where the first incomplete line begins; what there is of it is kept, so that no byte is read twice.
    A file that was replaced, or cut below what was read, is read again from its start, which `restarts` counts.
    Lines longer than `longest` bytes are skipped.
    """

    folder: RunFolder
    offset: int = 0
    longest: int = field(default_factory=lambda: LONGEST_LINE)
    restarts: int = 0
    _torn: bytearray = field(default_factory=bytearray, repr=False)
    _seen: int = 0
    _tail: bytes = field(default=b"", repr=False)
    _damaged: int = 0
    _first_damaged: int = 0
    _skipped: list[int] = field(default_factory=list)

    @property
    def position(self) -> int:
        """How far the file was read; what stands behind `offset` is a line without an end so far."""
        return self.offset + self._seen

    @property
    def notes(self) -> list[str]:
        """What was wrong with the readings so far, a line each."""
        said = [f"the readings were cut or replaced {self.restarts} times and read again"] if self.restarts else []
        if self._damaged:
            lines = f"{self._damaged} damaged line{'s' if self._damaged > 1 else ''}"
            said.append(f"{lines} before byte {self._first_damaged} left out")
        if self._skipped:
            more = f" and {len(self._skipped) - 1} more" if len(self._skipped) > 1 else ""
            said.append(f"a line of {self._skipped[0]} bytes{more} was skipped")
        return said

    def poll(self, *, most: int | None = None) -> Table:
        """The readings whose lines were completed since the last call; a torn last line waits for its end."""
        return to_table(self.lines(most=most))

    def lines(self, *, most: int | None = None) -> list[Reading]:
        """The same, one dict a line: step, probe, name, value. At most so many bytes are read."""
        found: list[Reading] = []
        for block in self._whole_lines(most):
            found.extend(self._parse(block))
        return found

    def _whole_lines(self, most: int | None) -> Iterable[bytes]:
        try:
            with self.folder.readings.open("rb") as handle:
                size = handle.seek(0, 2)
                if not self._goes_on(handle, size):
                    self._restart()
                handle.seek(self.position)
                stop = size if most is None else min(size, self.position + most)
                while self.position < stop and (more := handle.read(min(CHUNK, stop - self.position))):
                    if whole := self._complete(more):
                        yield whole
        except FileNotFoundError:
            return
        except OSError as error:
            raise UnreadableError(f"cannot read {self.folder.readings}: {error.strerror}") from None

    def _goes_on(self, handle: BinaryIO, size: int) -> bool:
        """Is this still the file that was read so far?"""
        if size < self.position:
            return False
        handle.seek(self.position - len(self._tail))
        return handle.read(len(self._tail)) == self._tail

    def _restart(self) -> None:
        self.offset = self._seen = self._damaged = 0
        self._torn, self._tail = bytearray(), b""
        self._skipped.clear()
        self.restarts += 1

    def _complete(self, more: bytes) -> bytes:
        """The lines that `more` completes; what follows the last of them is kept for the next time."""
        self._tail = (self._tail + more)[-TAIL:] if len(more) < TAIL else more[-TAIL:]
        first, end = more.find(b"\n") + 1, more.rfind(b"\n") + 1
        if not end:
            self._seen += len(more)
            self._torn = self._torn + more if self._seen <= self.longest else bytearray()
            return b""
        if self._seen + first > self.longest:
            self._skipped.append(self._seen + first)
            whole = more[first:end]
        else:
            whole = bytes(self._torn) + more[:end]
        self.offset += self._seen + end
        self._torn, self._seen = bytearray(more[end:]), len(more) - end
        return whole

    def _parse(self, block: bytes) -> list[Reading]:
        try:
            found: list[Reading] = json.loads(b"[" + block[:-1].replace(b"\n", b",") + b"]")
            # two damaged lines may make one reading between them
            if len(found) == block.count(b"\n") and all(map(_is_reading, found)):
                return found
        except (ValueError, RecursionError):
            pass
        return self._parse_each(block)

    def _parse_each(self, block: bytes) -> list[Reading]:
        found, bad = [], 0
        for text in block[:-1].split(b"\n"):
            try:
                reading = json.loads(text)
            except (ValueError, RecursionError):
                bad += 1
                continue
            if _is_reading(reading):
                found.append(reading)
            else:
                bad += 1
        self._first_damaged = self._first_damaged if self._damaged else self.offset
        self._damaged += bad
        return found


def _is_reading(reading: Any) -> bool:
    try:
        step, value = reading["step"], reading["value"]
        if not (type(step) is int and type(reading["probe"]) is str and type(reading["name"]) is str):
            return False
        if not 0 <= step < LARGEST_STEP or (len(reading) > 4 and not _are_notes(reading.get("notes", {}))):
            return False
    except (KeyError, TypeError, IndexError):
        return False
    if type(value) is float:
        return True
    return all(map(_is_number, value)) if type(value) is list else _is_number(value)


def _are_notes(notes: Any) -> bool:
    return type(notes) is dict and all(type(note) is str and _PLACE.fullmatch(place) for place, note in notes.items())


def _is_number(value: Any) -> bool:
    kind = type(value)
    return kind is float or (kind is int and -1e308 < value < 1e308) or value in ("inf", "-inf", "nan")


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
    if state != "growing" and (torn := folder.recorded - follower.offset) > 0:
        notes.append(f"a torn last line of {torn} bytes was dropped")
    if folder.done_json.exists() and not folder.done:
        notes.append("done.json speaks of more readings than there are; the run counts as not done")
    return Run(folder, state, record, outcome, readings, tuple(notes))
