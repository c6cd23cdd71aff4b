"""Fetching one file: progress on stderr, going on where a broken transfer stopped, verified before it counts."""

import errno
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from leadline.core.errors import UnreadableError
from leadline.core.version import VERSION

_TIMEOUT = 20.0
_CHUNK = 2**18


def fetch(address: str, target: Path, *, verify: Callable[[Path], object]) -> None:
    """Bring the file at `address` to `target`; a file that `verify` refuses never gets that name.

    A partial file is kept as `target`.part when the transfer breaks, and the next call goes on from its end.
    A server that cannot be reached, or stops answering, is a ConnectionError.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    with alone(target):
        if not target.is_file():
            _bring(address, part, verify)
            part.replace(target)


@contextmanager
def alone(target: Path) -> Iterator[None]:
    """Let one process at a time make a file or folder: the others wait and find it there."""
    lock = target.with_name(target.name + ".lock")
    try:
        with lock.open("w") as handle:
            if sys.platform != "win32":
                import fcntl

                fcntl.flock(handle, fcntl.LOCK_EX)
            yield
    finally:
        lock.unlink(missing_ok=True)


def _bring(address: str, part: Path, verify: Callable[[Path], object]) -> None:
    went_on = part.exists()
    _transfer(address, part)
    try:
        verify(part)
    except UnreadableError as error:
        part.unlink()
        if not went_on:
            raise UnreadableError(f"what {address} serves was refused and removed: {error}") from error
        _bring(address, part, verify)


def _transfer(address: str, part: Path) -> None:
    """Ask again from the end of the partial file for as long as each answer brings something."""
    while True:
        have = _size(part)
        try:
            if _receive(address, part, have):
                return
            reason = "the connection was closed early"
        except HTTPError as error:
            raise ConnectionError(f"could not be fetched from {address} ({error.code} {error.reason})") from error
        except (URLError, HTTPException, TimeoutError, ConnectionError) as error:
            reason = str(getattr(error, "reason", error))
        if _size(part) <= have:
            raise ConnectionError(f"could not be fetched from {address} ({reason})")


def _receive(address: str, part: Path, have: int) -> bool:
    """Append one answer of the server to the first `have` bytes; whether the file is then complete."""
    request = Request(address, headers={"User-Agent": f"leadline/{VERSION}"})
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        answer: HTTPResponse = urlopen(request, timeout=_TIMEOUT)
    except HTTPError as error:
        error.close()
        if error.code == 416 and have:  # nothing lies beyond the end of the partial file
            return True
        raise
    with answer:
        start = have if answer.status == 206 else 0
        length = answer.headers.get("Content-Length")
        total = start + int(length) if length else None
        _check_space(part, total, have)
        _write(answer, part, start, total)
    return total is None or _size(part) >= total


def _write(answer: HTTPResponse, part: Path, start: int, total: int | None) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress, part.open("ab" if start else "wb") as file:
        bar = progress.add_task(part.stem, total=total, completed=start)
        try:
            while chunk := answer.read(_CHUNK):
                file.write(chunk)
                progress.advance(bar, len(chunk))
            file.flush()
        except OSError as error:
            if error.errno == errno.ENOSPC:
                part.unlink()
            raise


def _check_space(part: Path, total: int | None, have: int) -> None:
    free = shutil.disk_usage(part.parent).free
    if total and free < total - have:
        raise UnreadableError(f"{part.parent} has {free:,} bytes free; {part.stem} needs {total - have:,} more")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
