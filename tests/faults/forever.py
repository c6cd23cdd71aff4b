"""Model files that never come to an end: which way is told by an environment variable, at import."""

import os
import threading
import time
from typing import Any

WAY = "LEADLINE_TEST_FOREVER"


def _busy() -> None:
    while True:
        pass


def _sleeping() -> None:
    time.sleep(1e6)


def _waiting() -> None:
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def _swallowing_errors() -> None:
    while True:
        try:
            time.sleep(1e6)
        except Exception:
            continue


def _swallowing_everything() -> None:
    while True:
        try:
            time.sleep(1e6)
        except BaseException:
            continue


WAYS = {each.__name__[1:]: each for each in (_busy, _sleeping, _waiting, _swallowing_errors, _swallowing_everything)}


def never(way: str) -> Any:
    """A factory that does not come back."""
    WAYS[way]()


if way := os.environ.get(WAY):
    WAYS[way]()
