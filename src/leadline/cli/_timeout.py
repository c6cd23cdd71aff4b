"""A limit on how long somebody's code may keep the command waiting."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from leadline.core.errors import UsageError

AGAIN = 1.0
"""Seconds after which the code is told again, should it have swallowed the first word."""


class _Up(BaseException):
    """No Exception, so that ordinary handlers on the way do not take it for theirs."""


@contextmanager
def time_limit(seconds: float, *, what: str, option: str) -> Iterator[None]:
    """What runs inside ends after `seconds` with one line that says where it stood; 0 means no limit.

    Python code and waiting are interrupted, a single call into C code only when it comes back.
    """
    if seconds <= 0:
        yield
        return
    place: list[str] = []

    def tell(_: int, frame: FrameType | None) -> None:
        if frame is not None:
            place.append(f"{frame.f_code.co_filename}, line {frame.f_lineno}, in {frame.f_code.co_name}")
        raise _Up

    former = signal.signal(signal.SIGALRM, tell)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
    try:
        yield
    except _Up:
        where = f" (it stands at {place[0]})" if place else ""
        raise UsageError(f"{what} is not done after {seconds:g} s{where}; {option} gives it longer") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)
