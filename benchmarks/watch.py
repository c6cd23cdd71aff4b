"""The live page with 200 runs of which 4 grow by 10 lines a second each: what the server takes, and how soon one sees.

The server is `leadline watch` in a process of its own; one viewer has the list open, one a growing run. Its share of a
core is taken over some seconds, and beside it the time from writing a line to getting it as an event.
"""

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import httpx
import psutil
from harness import Row, run
from report import record

from leadline.store.writer import RunWriter

RUNS, GROWING, RATE = 200, 4, 10
SECONDS = 20.0
COMMAND = (sys.executable, "-c", "import sys; from leadline.cli import main; sys.exit(main())")


def begin(folder: Path, described: dict[str, Any], steps: int = 200) -> RunWriter:
    """A run with some losses and profiles."""
    writer = RunWriter(folder)
    writer.describe(described)
    blocks = len(described["places"]["block"])
    for step in range(steps):
        writer.append(step, "loss", "train/loss", 2.3 * 0.99**step)
        if step % 10 == 0:
            writer.append(step, "gradient_norm_ratio", "ratio", [1 + k / 100 for k in range(blocks)])
    return writer


def runs(root: Path) -> list[RunWriter]:
    """All of them on the disk; those that grow are given back."""
    described = record("resnet-110")
    for k in range(RUNS - GROWING):
        with begin(root / f"done-{k:03}", described) as writer:
            writer.finish({"outcome": "finished", "steps": 200, "last": {"loss": 0.5}})
    return [begin(root / f"grows-{k}", described) for k in range(GROWING)]


@contextmanager
def serving(root: Path) -> Iterator[tuple[psutil.Process, str]]:
    """The server and its address."""
    words = [*COMMAND, "watch", str(root), "--port", "0", "--json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        said = ""
        while not said.endswith("}\n"):
            said += process.stdout.readline() if process.stdout else ""
        try:
            yield psutil.Process(process.pid), json.loads(said)["url"]
        finally:
            process.terminate()


class Viewer(threading.Thread):
    """Reads events as they come, and notes when each step of the loss came."""

    def __init__(self, address: str) -> None:
        super().__init__(daemon=True)
        self.address, self.came, self.events = address, dict[int, float](), 0

    def run(self) -> None:
        try:
            with httpx.stream("GET", self.address, timeout=30) as answer:
                for line in answer.iter_lines():
                    if not line.startswith("data: "):
                        continue
                    self.events += 1
                    for reading in json.loads(line[6:]).get("readings", ()):
                        if "step" in reading:
                            self.came.setdefault(reading["step"], time.monotonic())
        except httpx.HTTPError:
            return


def watched(seconds: float) -> tuple[float, list[float]]:
    """The server's share of a core, and seconds from writing a line to seeing it."""
    with tempfile.TemporaryDirectory() as temporary:
        writers = runs(Path(temporary))
        with serving(Path(temporary)) as (server, url):
            viewers = [Viewer(f"{url}events/list"), Viewer(f"{url}events/runs?run=grows-0")]
            for viewer in viewers:
                viewer.start()
            settled(server)
            wrote: dict[int, float] = {}
            began, before = time.monotonic(), server.cpu_times()
            for step in range(200, 200 + int(seconds * RATE)):
                for writer in writers:
                    writer.append(step, "loss", "train/loss", 2.3 * 0.99**step)
                wrote[step] = time.monotonic()
                time.sleep(max(0.0, began + (step - 199) / RATE - time.monotonic()))
            after, elapsed = server.cpu_times(), time.monotonic() - began
            time.sleep(1.0)
            share = (after.user + after.system - before.user - before.system) / elapsed
            late = [viewers[1].came[step] - at for step, at in wrote.items()]
        for writer in writers:
            writer.close()
    return share, late


def settled(server: psutil.Process) -> None:
    """Waits until what was there before has been read and judged."""
    quiet = 0
    while quiet < 3:
        quiet = quiet + 1 if server.cpu_percent(1.0) < 15 else 0


def measure(rounds: int) -> Sequence[Row]:
    found = [watched(SECONDS) for _ in range(rounds)]
    shares = sorted(share for share, _ in found)
    late = sorted(each for _, some in found for each in some)
    spread = {"low": shares[0], "high": shares[-1]}
    worst = {"low": median(late), "high": late[-1]}
    return [
        Row(what=f"watch {RUNS} runs", against="of a core", value=median(shares), bar=0.1, at_most=True, **spread),
        Row(what="new reading seen", against="s, the slowest", value=late[-1], bar=1, at_most=True, **worst),
    ]


if __name__ == "__main__":
    run(measure, description=__doc__, rounds=1)
