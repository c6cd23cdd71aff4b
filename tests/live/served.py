"""The command in a process of its own, its events as they come, and run folders written by the store's writer."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import torch

from leadline import models
from leadline.store.layout import write_json
from leadline.store.writer import RunWriter
from leadline.taps.inputs import understand
from leadline.train.presets import choose
from leadline.train.sounder import Sounder, look

COMMAND = (sys.executable, "-c", "import sys; from leadline.cli import main; sys.exit(main())")
PATIENCE = 20.0


@cache
def record() -> dict[str, Any]:
    """The description of a small network with its blocks and places."""
    model = models.create("resnet-8", num_classes=10, in_channels=1)
    inputs = understand(model, (torch.randn(2, 1, 8, 8), torch.randint(10, (2,))))
    sounder = Sounder(model=model, anatomy=look(model, inputs), probes=choose("light"), inputs=inputs)
    return {"config": {"model": {"name": "resnet-8", "args": {}}, "seed": 0}, "steps": 400, **sounder.describe()}


def grow(writer: RunWriter, steps: range) -> None:
    """Losses, and a profile every tenth step."""
    blocks = len(record()["places"]["block"])
    for step in steps:
        writer.append(step, "loss", "train/loss", 2.3 * 0.99**step)
        if step % 10 == 0:
            writer.append(step, "gradient_norm_ratio", "ratio", [1 + step / 1000 + k / 100 for k in range(blocks)])


def begin(folder: Path, steps: int = 50) -> RunWriter:
    """A run that grows as long as its writer is not closed."""
    writer = RunWriter(folder)
    writer.describe(record())
    grow(writer, range(steps))
    return writer


def finish(folder: Path, steps: int = 50) -> Path:
    """A run that is done."""
    with begin(folder, steps) as writer:
        writer.finish({"outcome": "finished", "steps": steps, "last": {"loss": 0.5, "accuracy": 0.9}})
    return folder


def describe(folder: Path, text: str | None = None) -> Path:
    """A folder with nothing but a description, or with that text as one."""
    folder.mkdir(parents=True)
    if text is None:
        write_json(folder / "run.json", {"format": 1, **record()})
    else:
        (folder / "run.json").write_text(text)
    return folder


@dataclass(frozen=True)
class Event:
    """One event as it came, with when."""

    kind: str
    mark: str
    data: Any
    at: float


@dataclass(frozen=True)
class Served:
    """A running server."""

    url: str
    process: "subprocess.Popen[str]"

    @property
    def base(self) -> str:
        """Without the token."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or 0

    def get(self, path: str, **options: Any) -> httpx.Response:
        return httpx.get(self.base + path, timeout=PATIENCE, **options)

    @contextmanager
    def events(self, path: str, **options: Any) -> Iterator[Iterator[Event]]:
        """What a viewer gets, for as long as it looks."""
        with httpx.stream("GET", self.base + path, timeout=PATIENCE, **options) as answer:
            assert answer.status_code == 200, answer.status_code
            assert answer.headers["content-type"].startswith("text/event-stream")
            yield parsed(answer.iter_lines())

    def rows(self) -> dict[str, Any]:
        """The list by name, once everything in it was looked at."""
        with self.events("/events/list") as events:
            for event in events:
                return {row["name"]: row for row in event.data["rows"]}
        raise AssertionError("no list came")

    def when(self, fits: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The list as soon as it is so."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            found = self.rows()
            if fits(found):
                return found
            time.sleep(0.1)
        raise AssertionError(f"the list stays: {found}")

    def settled(self, *, rows: int) -> dict[str, Any]:
        """The list when so many runs have been judged, or cannot be."""
        return self.when(lambda found: sum(bool(row["verdict"] or row["notes"]) for row in found.values()) >= rows)


def parsed(lines: Iterator[str]) -> Iterator[Event]:
    kind, mark, data = "message", "", ""
    for line in lines:
        name, _, value = line.partition(": ")
        if name == "event":
            kind = value
        elif name == "id":
            mark = value
        elif name == "data":
            data = value
        elif not line and data:
            yield Event(kind, mark, json.loads(data), time.monotonic())
            kind, data = "message", ""


@contextmanager
def served(runs: Path, *words: str) -> Iterator[Served]:
    """`leadline watch RUNS` on a free port; it has to end by itself when it is told to."""
    port = () if "--port" in words else ("--port", "0")
    with started(["watch", str(runs), "--json", *port, *words]) as process:
        assert process.stdout is not None and process.stderr is not None
        said = ""
        while not said.endswith("}\n"):
            line = process.stdout.readline()
            assert line, process.stderr.read()
            said += line
        yield Served(json.loads(said)["url"], process)
        process.terminate()
        assert process.wait(10) == 0
        said = process.stderr.read()
        assert said == ""


@contextmanager
def started(words: list[str]) -> Iterator["subprocess.Popen[str]"]:
    """The command, ended with the block."""
    with subprocess.Popen([*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def until(events: Iterator[Event], kind: str) -> Event:
    """The next event of that kind."""
    return next(event for event in events if event.kind == kind)


def key(path: Path) -> str:
    from leadline.live import names

    return names.key(path.name)
