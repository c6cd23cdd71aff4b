"""Small disks to fill and to close: file systems in memory of a given size, mounted where the system lets us."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Disk:
    """A mounted file system."""

    path: Path

    def resize(self, kilobytes: int) -> None:
        self._remount(f"size={kilobytes}k")

    def close(self) -> None:
        """From now on nothing can be written."""
        self._remount("ro")

    def open(self) -> None:
        self._remount("rw")

    def fill(self) -> Path:
        """Takes all the room there is; returns the file that has it."""
        ballast = self.path / "ballast"
        with suppress(OSError), ballast.open("wb", buffering=0) as handle:
            while handle.write(b"\0" * 4096) == 4096:
                pass
        assert os.statvfs(self.path).f_bavail == 0
        return ballast

    def _remount(self, option: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{option}", str(self.path)], check=True)


@contextmanager
def small(place: Path, *, kilobytes: int) -> Iterator[Disk]:
    """An empty disk at `place`; the test is skipped where none may be mounted."""
    place.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "leadline", str(place)]
    try:
        subprocess.run(words, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"a small disk cannot be mounted here: {getattr(error, 'stderr', error)}")
    try:
        yield Disk(place)
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)
