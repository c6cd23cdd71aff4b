"""Appending profiles and reading a long run, in CPU seconds: bars of the run store."""

import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from harness import Row, Timing, run

from leadline.store.reader import read
from leadline.store.writer import RunWriter


def timed(action: Callable[[], object], rounds: int) -> Timing:
    seconds = []
    for _ in range(rounds):
        start = time.process_time()
        action()
        seconds.append(time.process_time() - start)
    return Timing("", tuple(seconds))


def row(what: str, timing: Timing, *, scale: float, bar: float, note: str) -> Row:
    low, high = (scale * value for value in timing.quartiles)
    return Row(
        what=what, against="CPU time", value=scale * timing.median, low=low, high=high, bar=bar, at_most=True, note=note
    )


def measure(rounds: int) -> list[Row]:
    chance, rows = Random(0), []
    with TemporaryDirectory() as folder:
        for name, lines, width in (("scalars", 1_000_000, 1), ("profiles", 5_000, 200)):
            values = [chance.gauss(0, 1) for _ in range(width)]
            with RunWriter(Path(folder) / name) as writer:
                writer.describe({})
                for step in range(lines):
                    writer.append(step, "loss", "train/loss", values if width > 1 else values[0] * step)
            reading = timed(lambda name=name: read(Path(folder) / name), rounds)  # type: ignore[misc]
            what = f"read 1,000,000 readings ({lines:,} lines of {width})"
            rows.append(row(what, reading, scale=1.0, bar=2.0, note="seconds"))
        with RunWriter(Path(folder) / "append") as writer:
            values = [chance.gauss(0, 1) for _ in range(200)]
            appending = timed(lambda: [writer.append(1, "ratio", "ratio", values) for _ in range(1000)], rounds)
            rows.append(row("append a 200-block profile", appending, scale=1e3, bar=100, note="microseconds"))
    return rows


if __name__ == "__main__":
    run(measure, description=__doc__, rounds=5)
