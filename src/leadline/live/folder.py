"""What stands in the runs folder: its run folders, the files in them, and those that are not to be followed."""

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from leadline.core.errors import UnreadableError
from leadline.live.names import text
from leadline.store.layout import RunFolder

FILES = ("run.json", "readings.jsonl", "done.json", "writer.lock", "diagnosis.json", "proofs.json")
LARGEST_DESCRIPTION = 1 << 25
"""So many bytes of JSON are read of a description; one of a thousand blocks has one million."""

Stamp = tuple[int, int, int]


@dataclass(frozen=True)
class Found:
    """A run folder as it stands now: the inode, size and time of its files, and why it is not read, if so."""

    name: str
    folder: RunFolder
    files: Mapping[str, Stamp]
    trouble: str = ""

    def stamp(self, name: str) -> Stamp | None:
        """What changes when a file is written or replaced; None where there is none."""
        return self.files.get(name)

    @property
    def size(self) -> int:
        """The length of the readings."""
        return self.files.get("readings.jsonl", (0, 0, 0))[1]

    @property
    def changed(self) -> float:
        """When something was written last, in seconds since 1970."""
        return max((time for _, _, time in self.files.values()), default=0) / 1e9


def names(root: Path) -> list[str]:
    """What stands directly below `root`, in order."""
    try:
        with os.scandir(root) as entries:
            return sorted(entry.name for entry in entries)
    except OSError as error:
        raise UnreadableError(f"cannot list the runs in {text(str(root))}: {error.strerror}") from None


def listing(root: Path) -> Iterator[Found]:
    """The run folders directly below `root`, by name."""
    found = names(root)
    inside = root.resolve()
    return (run for name in found if (run := look(inside, name)) is not None)


def look(root: Path, name: str) -> Found | None:
    """One folder below `root`, itself resolved; None if it is no run folder (any more).

    Nothing but plain files is read: a link may lead out of the folder, a pipe would never end.
    """
    path = os.path.join(root, name)  # noqa: PTH118 - two hundred runs are looked at every second
    folder = RunFolder(Path(path))
    try:
        if stat.S_ISLNK(os.lstat(path).st_mode) and not _within(Path(path).resolve(), root):
            described = os.path.lexists(os.path.join(path, "run.json"))  # noqa: PTH118
            return (
                Found(name, folder, {}, "a link that leads out of the runs folder; not followed") if described else None
            )
        files, trouble = _files(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        return Found(name, folder, {}, f"cannot be read: {error.strerror}")
    return Found(name, folder, files, trouble) if "run.json" in files or trouble else None


def _within(path: Path, root: Path) -> bool:
    return root in path.parents


def _files(path: str) -> tuple[dict[str, Stamp], str]:
    files: dict[str, Stamp] = {}
    for name in FILES:
        try:
            found = os.lstat(f"{path}{os.sep}{name}")
        except (FileNotFoundError, NotADirectoryError):
            if name == "run.json":
                return {}, ""
            continue
        if not stat.S_ISREG(found.st_mode):
            return files, f"its {name} is {_kind(found.st_mode)}, expected a plain file; not followed"
        files[name] = (found.st_ino, found.st_size, found.st_mtime_ns)
    for name in ("run.json", "done.json", "diagnosis.json", "proofs.json"):
        if files.get(name, (0, 0, 0))[1] > LARGEST_DESCRIPTION:
            size = files[name][1] >> 20
            return files, f"its {name} has {size} MB, expected at most {LARGEST_DESCRIPTION >> 20}; not read"
    return files, ""


def _kind(mode: int) -> str:
    kinds = {stat.S_IFLNK: "a link", stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(mode), "a device")
