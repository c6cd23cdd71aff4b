"""RunWriter: the one writer of a run folder; whole lines, appended and flushed; done.json last, once."""

import fcntl
import json
import math
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from leadline.core.errors import UnreadableError, UsageError
from leadline.store.layout import FORMAT, RunFolder, read_json, write_json

Value = float | Sequence[float]


def line(step: int, probe: str, name: str, value: Value, notes: Mapping[int, str] | None = None) -> bytes:
    """One reading as one line of JSON; what JSON has no number for is written "inf", "-inf" or "nan".

    `notes` says why a number is missing: by its place in the value, -1 for the reading as a whole.

    >>> line(3, "loss", "loss", float("inf"))
    b'{"step":3,"probe":"loss","name":"loss","value":"inf"}\\n'
    """
    head = f'{{"step":{step:d},"probe":{json.dumps(probe)},"name":{json.dumps(name)},"value":'
    tail = f',"notes":{json.dumps(dict(notes))}' if notes else ""
    return f"{head}{_number(value)}{tail}}}\n".encode()


def _number(value: Value) -> str:
    numbers = [float(value)] if isinstance(value, float | int) else list(map(float, value))
    text = ",".join(map(repr, numbers))
    if "n" in text:  # of all floats only inf and nan have one
        text = ",".join(repr(number) if math.isfinite(number) else f'"{number}"' for number in numbers)
    return text if isinstance(value, float | int) else f"[{text}]"


class Busy(UsageError):
    """Another process is writing the run."""


class RunWriter:
    """Appends readings to a run folder.

    Opened at byte `resume_at` (where the last checkpoint left the readings), it first walks over what stands behind
    that place: a replayed step whose line is already there is not written again, so nothing that was recorded is
    lost while a run catches up; at the first difference (a torn last line) the file is cut and grows from there.
    """

    def __init__(self, folder: Path, *, resume_at: int = 0) -> None:
        self.folder = RunFolder(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.folder.lock, os.O_RDWR | os.O_CREAT, 0o644)
            self._take_lock()
            for left in folder.glob(".*.part"):
                left.unlink()  # by a process that was killed while it wrote
            self._file = os.open(self.folder.readings, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise UnreadableError(f"cannot write the run folder {folder}: {error.strerror}") from None
        self._end = os.fstat(self._file).st_size
        self.go_on(resume_at)

    def go_on(self, at: int) -> None:
        """The next reading stands at byte `at`."""
        if self._end < at:
            self.close()
            raise UnreadableError(
                f"{self.folder.readings} has {self._end} bytes; its checkpoint expected at least {at}"
            )
        self._position = at

    def _take_lock(self) -> None:
        for attempt in range(20):
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                # a reader that asks for the state holds the lock for an instant
                time.sleep(0.01 * (attempt + 1))
        raise Busy(f"another process is writing the run {self.folder.path}; expected one writer for each run")

    @property
    def position(self) -> int:
        """The length of the readings so far, in bytes: what a checkpoint has to remember."""
        return self._position

    def append(self, step: int, probe: str, name: str, value: Value, *, notes: Mapping[int, str] | None = None) -> None:
        """Adds one reading, a scalar or one number for each block."""
        self._append(line(step, probe, name, value, notes))

    def _append(self, content: bytes) -> None:
        try:
            if self._position < self._end:
                if os.pread(self._file, len(content), self._position) == content:
                    self._position += len(content)
                    return
                os.ftruncate(self._file, self._position)
                self._end = self._position
            written = 0
            while written < len(content):
                written += os.pwrite(self._file, content[written:], self._position + written)
        except OSError as error:
            # half a line must not be left for the next one to be glued to
            os.ftruncate(self._file, self._position)
            raise UnreadableError(f"cannot write {self.folder.readings}: {error.strerror}") from None
        self._position += len(content)
        self._end = self._position

    def describe(self, record: Mapping[str, Any]) -> None:
        """Writes run.json: what is run, with what, where; atomically. A second start keeps the first description."""
        if not self.folder.run_json.exists():
            write_json(self.folder.run_json, {"format": FORMAT, **record})
        else:
            read_json(self.folder.run_json, what="the description of a run")

    def finish(self, outcome: Mapping[str, Any]) -> None:
        """Forces the readings to the disk and writes done.json."""
        self.flush(cut=True)
        write_json(self.folder.done_json, {"format": FORMAT, **outcome, "readings_bytes": self._position})

    def flush(self, *, cut: bool = False) -> None:
        """Forces what was appended to the disk; `cut` leaves nothing behind it."""
        try:
            if cut:
                os.ftruncate(self._file, self._position)
            os.fsync(self._file)
        except OSError as error:
            raise UnreadableError(f"cannot write {self.folder.readings}: {error.strerror}") from None

    def close(self) -> None:
        """Lets go of the folder; closing twice is fine."""
        for name in ("_file", "_lock"):
            handle = self.__dict__.pop(name, None)
            if handle is not None:
                os.close(handle)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
