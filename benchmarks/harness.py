"""Speed as a ratio: both sides measured in one process, interleaved, one thread; medians, spread, and a bar."""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import torch


@dataclass(frozen=True)
class Timing:
    """CPU seconds of one side over the rounds: the median and the quartiles around it."""

    name: str
    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return median(self.seconds)

    @property
    def quartiles(self) -> tuple[float, float]:
        ordered = sorted(self.seconds)
        return ordered[len(ordered) // 4], ordered[(3 * len(ordered)) // 4]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of a benchmark's answer: a number, the bar it is held against, and how it was obtained."""

    what: str
    against: str
    value: float
    bar: float
    at_most: bool
    low: float = float("nan")
    high: float = float("nan")
    note: str = ""
    reached: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "reached", self.value <= self.bar if self.at_most else self.value >= self.bar)


def interleave(sides: dict[str, Callable[[], object]], *, rounds: int = 7, warm_up: int = 1) -> dict[str, Timing]:
    """Process CPU seconds of each side, taken in turn `rounds` times, so that a slow spell hits all sides alike."""
    torch.set_num_threads(1)
    for _ in range(warm_up):
        for side in sides.values():
            side()
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds):
        order = list(sides.items())
        for name, side in order if number % 2 == 0 else reversed(order):
            start = time.process_time()
            side()
            seconds[name].append(time.process_time() - start)
    return {name: Timing(name, tuple(values)) for name, values in seconds.items()}


def ratios(top: Timing, bottom: Timing, *, scale: float = 1.0) -> tuple[float, float, float]:
    """Median and quartiles of the per-round ratio top / bottom (times `scale`)."""
    each = Timing("ratio", tuple(scale * a / b for a, b in zip(top.seconds, bottom.seconds, strict=True)))
    return each.median, *each.quartiles


def ratio_row(
    what: str, *, top: Timing, bottom: Timing, bar: float, at_most: bool, scale: float = 1.0, note: str = ""
) -> Row:
    """The ratio of two timings as a row; `against` is the name of the side below the line."""
    value, low, high = ratios(top, bottom, scale=scale)
    against = bottom.name if at_most else top.name
    return Row(what=what, against=against, value=value, low=low, high=high, bar=bar, at_most=at_most, note=note)


def show(rows: Sequence[Row]) -> str:
    """The rows as a text table."""
    head = ("what", "against", "measured", "quartiles", "bar", "", "note")
    cells = [head] + [
        (
            row.what,
            row.against,
            f"{row.value:.4g}",
            f"{row.low:.3g} .. {row.high:.3g}" if row.low == row.low else "",
            f"{'<=' if row.at_most else '>='} {row.bar:g}",
            "reached" if row.reached else "MISSED",
            row.note,
        )
        for row in rows
    ]
    widths = [max(len(line[column]) for line in cells) for column in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells
    )


def run(measure: Callable[[int], Sequence[Row]], *, description: str | None, rounds: int = 7) -> None:
    """The command line of a benchmark script: `--rounds N` and `--json`; progress goes to stderr."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rounds", type=int, default=rounds, help="interleaved repeats of every side")
    parser.add_argument("--json", action="store_true", help="one JSON list instead of the table")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = measure(options.rounds)
    if options.json:
        json.dump([asdict(row) for row in rows], sys.stdout, indent=1)
        sys.stdout.write("\n")
    else:
        sys.stdout.write(show(rows) + "\n")
