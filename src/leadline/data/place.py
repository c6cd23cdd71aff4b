"""Place: the data folder, and the official files in it, found or fetched, verified and read."""

import gzip
import hashlib
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from leadline.core.errors import UnreadableError, UsageError
from leadline.data.fetch import fetch

_GZIP = b"\x1f\x8b"
_MOST_UNPACKED = 2**28


def content_of(path: Path, md5: str) -> bytes:
    """The content of a file, unpacked if it is gzipped, if it has the expected md5; otherwise an error."""
    with explained("read", path):
        content = path.read_bytes()
        if content.startswith(_GZIP):
            with gzip.open(path) as packed:
                content = packed.read(_MOST_UNPACKED)
    return checked(content, md5, what=path)


def check_file(path: Path, md5: str) -> None:
    """Refuse a file that does not have the expected md5 as it lies there, packed or not."""
    with explained("read", path):
        checked(path.read_bytes(), md5, what=path)


def checked(content: bytes, md5: str, *, what: Path | str) -> bytes:
    """The content, if it has the expected md5; otherwise an error that says what it is that has another."""
    found = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if found != md5:
        raise UnreadableError(f"{what} is damaged, cut short or altered: its md5 is {found}, expected {md5}")
    return content


@dataclass(frozen=True)
class Official:
    """A file as its authors publish it, with the md5 that `check` compares.

    It lies in `folder` of the data root (or in the root itself), at `address` on the net, and at folder/name on a
    mirror, so that a data folder served as it is makes a mirror.
    """

    folder: str
    name: str
    md5: str
    address: str
    check: Callable[[Path, str], object] = content_of

    def url(self) -> str:
        """Where to fetch it: from LEADLINE_MIRROR if that is set."""
        mirror = os.environ.get("LEADLINE_MIRROR")
        if not mirror:
            return self.address + self.name
        if not mirror.startswith(("http://", "https://")):
            raise UsageError(f"LEADLINE_MIRROR must begin with http:// or https://; got {mirror!r}")
        return "/".join(part for part in (mirror.rstrip("/"), self.folder, self.name) if part)


@dataclass(frozen=True)
class Place:
    """Where data files are, and whether missing ones may be fetched."""

    root: Path
    download: bool = True

    def find(self, folder: str, *names: str) -> Path | None:
        """The first file there is of these names in the folder, or else in the root itself."""
        paths = [parent / name for parent in (self.root / folder, self.root) for name in names]
        with explained("read", self.root):
            return next((path for path in paths if path.is_file()), None)

    def read(self, official: Official, *also: str) -> bytes:
        """The verified content of an official file that may also be called by other names; fetched if missing."""
        path = self.find(official.folder, official.name, *also) or self.fetched(official)
        try:
            return content_of(path, official.md5)
        except UnreadableError as error:
            own = self.root / official.folder
            if path.parent == own:
                raise
            raise UnreadableError(f"{error} (another dataset's? this one's belong in {own})") from error

    def fetched(self, official: Official) -> Path:
        """Where an official file lies after it was fetched and verified."""
        target = self.root / official.folder / official.name
        missing = f"{official.name} is not in {target.parent}"
        advice = (
            f"put it there, set LEADLINE_DATA to a folder that has it or LEADLINE_MIRROR to an address that serves it, "
            f"or run: curl -L --create-dirs -o {target} {official.address}{official.name}"
        )
        if not self.download:
            raise UnreadableError(f"{missing}; {advice}")
        with explained(f"fetch {official.name} into", target.parent):
            try:
                fetch(official.url(), target, verify=lambda part: official.check(part, official.md5))
            except ConnectionError as error:
                raise UnreadableError(f"{missing} and {error}; {advice}") from error
        return target


def data_root() -> Path:
    """`LEADLINE_DATA`, or else the user's cache folder."""
    if chosen := os.environ.get("LEADLINE_DATA"):
        return Path(chosen).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "leadline"


@contextmanager
def explained(doing: str, path: Path) -> Iterator[None]:
    """Turns what the system says about a file or folder into one line that names it."""
    try:
        yield
    except UnreadableError:
        raise
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UnreadableError(f"{path} is damaged or cut short: {error}") from error
    except OSError as error:
        raise UnreadableError(f"cannot {doing} {error.filename or path}: {error.strerror or error}") from error
