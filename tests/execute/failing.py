"""Studies that do not come to an end, for real: killed, aborted, raising; and one that does."""

import os
import signal
import time
from pathlib import Path

from leadline.core.errors import UsageError
from leadline.core.study import Measure


def fine(*, seed: int) -> Measure:
    yield 0, "value", float(seed)


def killed_once(*, marker: str) -> Measure:
    yield 0, "value", 1.0
    if not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    yield 1, "value", 2.0


def aborts() -> Measure:
    yield 0, "value", 1.0
    os.abort()


def raises_once(*, marker: str) -> Measure:
    yield 0, "value", 1.0
    if not Path(marker).exists():
        Path(marker).touch()
        raise ZeroDivisionError("nothing to divide by")


def raises() -> Measure:
    yield 0, "value", 1.0
    raise ZeroDivisionError("nothing to divide by")


def cannot_be_meant() -> Measure:
    yield 0, "value", 1.0
    raise UsageError("depth -1: expected at least 1")


def aborts_always() -> Measure:
    yield 0, "value", 1.0
    os.kill(os.getpid(), signal.SIGKILL)


def meets(*, here: str, seed: int, others: int) -> Measure:
    """Waits until as many are here as it is told; says which GPU it was given."""
    Path(here).mkdir(exist_ok=True)
    (Path(here) / str(seed)).touch()
    until = time.monotonic() + 60
    while len(list(Path(here).iterdir())) < others:
        if time.monotonic() > until:
            raise TimeoutError("nobody else came")
        time.sleep(0.02)
    yield 0, "gpu", float(os.environ["CUDA_VISIBLE_DEVICES"])
