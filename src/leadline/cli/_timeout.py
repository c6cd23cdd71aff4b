"""A limit on how long somebody's code may keep the command waiting."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from leadline.core.errors import UsageError

AGAIN = 0.5
"""Seconds after which the code is told again, should it have swallowed the first word."""
WORDS = 5
"""So often it is told; then the process ends there and then."""


class _Up(BaseException):
    """No Exception, so that ordinary handlers on the way do not take it for theirs."""


@contextmanager
def time_limit(seconds: float, *, what: str, option: str) -> Iterator[None]:
    """What runs inside ends after `seconds` with one line that says where it stood; 0 means no limit.

    Python code and waiting are interrupted, a single call into C code only when it comes back. Code that swallows the
    interruption again and again is ended with its process.
    """
    if seconds <= 0:
        yield
        return
    places: list[str] = []

    def error() -> UsageError:
        where = f" (it stands at {places[0]})" if places else ""
        return UsageError(f"{what} is not done after {seconds:g} s{where}; {option} gives it longer")

    def tell(_: int, frame: FrameType | None) -> None:
        if frame is not None:
            places.append(f"{frame.f_code.co_filename}, line {frame.f_lineno}, in {frame.f_code.co_name}")
        if len(places) > WORDS:
            sys.stderr.write(f"leadline: {error()}\n")
            sys.stderr.flush()
            os._exit(UsageError.exit_code)
        raise _Up

    former = signal.signal(signal.SIGALRM, tell)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
    try:
        yield
    except _Up:
        raise error() from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)
