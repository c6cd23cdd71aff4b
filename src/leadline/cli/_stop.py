"""A polite end: Ctrl-C or a TERM lets the step in hand finish and its checkpoint be written."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stop_signal() -> Iterator[Callable[[], bool]]:
    """Tells whether a signal has come; a second Ctrl-C ends the process at once."""
    came: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        if came and number == signal.SIGINT:
            raise KeyboardInterrupt
        came.append(number)

    former = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(came)
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
