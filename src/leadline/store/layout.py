"""Where things lie in a run folder, and what state a run is in."""

import fcntl
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from leadline.core.errors import UnreadableError

FORMAT = 1

State = Literal["growing", "done", "dead"]


class NewerError(UnreadableError):
    """A file of a newer version: not damaged, so nothing may take its place."""


@dataclass(frozen=True)
class RunFolder:
    """The paths of one run. `done.json` is written last; without it the run is growing or dead."""

    path: Path

    @property
    def run_json(self) -> Path:
        return self.path / "run.json"

    @property
    def readings(self) -> Path:
        return self.path / "readings.jsonl"

    @property
    def arrays(self) -> Path:
        return self.path / "arrays"

    @property
    def checkpoint(self) -> Path:
        return self.path / "checkpoint"

    @property
    def done_json(self) -> Path:
        return self.path / "done.json"

    @property
    def lock(self) -> Path:
        return self.path / "writer.lock"

    def state(self) -> State:
        """`done` with done.json and all it speaks of, `growing` while a living process holds the lock, else `dead`."""
        if self.done:
            return "done"
        return "growing" if self._locked() else "dead"

    @property
    def done(self) -> bool:
        """Whether done.json is there, and as many bytes of readings as it says: a copy of a growing run may lack some.

        A done.json that cannot be understood is left to whoever reads what it says.
        """
        try:
            spoken_of = json.loads(self.done_json.read_bytes())["readings_bytes"]
            return not self.recorded < spoken_of
        except (FileNotFoundError, NotADirectoryError):
            return False
        except (OSError, ValueError, RecursionError, KeyError, TypeError):
            return True

    @property
    def recorded(self) -> int:
        """How many bytes of readings there are."""
        try:
            return self.readings.stat().st_size
        except FileNotFoundError:
            return 0

    def _locked(self) -> bool:
        try:
            with self.lock.open("rb") as handle:
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return False
        except BlockingIOError:
            return True
        except OSError:
            return False


def run_folders(root: Path) -> Iterator[RunFolder]:
    """The run folders directly below `root`, by name; anything without a run.json is not one."""
    try:
        entries = sorted(os.scandir(root), key=lambda entry: entry.name)
    except OSError as error:
        raise UnreadableError(f"cannot list the runs in {root}: {error.strerror}") from None
    return (RunFolder(Path(entry.path)) for entry in entries if (Path(entry.path) / "run.json").is_file())


def write_json(path: Path, value: Any) -> None:
    """Writes a JSON file all at once: a reader sees the old content or the new one, never a part."""
    write_whole(path, (json.dumps(value, indent=1, allow_nan=False) + "\n").encode())


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file under another name, forces it to the disk and renames it into place."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as handle:
            handle.write(content)
            handle.flush()
            os.fsync(handle.fileno())
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise UnreadableError(f"cannot write {path}: {error.strerror}") from None


def read_json(path: Path, *, what: str) -> dict[str, Any]:
    """A JSON object from a file; a missing, damaged or newer one is one clear error."""
    try:
        value = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise UnreadableError(
            f"{path.parent} holds no {path.name}; expected a run folder made by leadline train"
        ) from None
    except OSError as error:
        raise UnreadableError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise UnreadableError(f"{path} is damaged: it is not JSON; expected {what}") from None
    if not isinstance(value, dict):
        raise UnreadableError(f"{path} is damaged: expected {what}, found a {type(value).__name__}")
    version = value.get("format", FORMAT)
    if not isinstance(version, int) or version > FORMAT:
        raise NewerError(f"{path} was written by a newer leadline (format {version!r}); expected {FORMAT} or older")
    return value
