"""Sinks: a few scalars of a growing run go to a tracker as well, which may fail or hang without the run noticing."""

import logging
import queue
import re
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import numpy as np

from leadline.core import plugins
from leadline.core.errors import unknown
from leadline.store.writer import RunWriter, Value

NAMES = ("tensorboard", "wandb", "mlflow")
ROOM = 1000
"""So many steps may wait for a slow tracker; what comes then is not forwarded."""
PATIENCE = 30.0
"""So many seconds a tracker may take at the end of a run."""

_log = logging.getLogger("leadline")
_FINE = re.compile(r"histogram/|p\d\d$|.*/mode\d")
"""Names of readings that are too many for a tracker; the run folder has them."""

Scalars = Mapping[str, float]


class Sink(Protocol):
    """Where scalars go besides the run folder; all is called on one thread of its own, and may raise or hang there."""

    def open(self, run: Path, record: Mapping[str, Any]) -> None: ...

    def log(self, step: int, scalars: Scalars) -> None: ...

    def close(self, outcome: Mapping[str, Any] | None) -> None:
        """The run ended; without an outcome it was broken off."""


def chosen(wanted: Iterable[str | Sink]) -> tuple[Sink, ...]:
    """The sinks meant, by name or as they are; a tracker is imported only here."""
    return tuple(_named(sink) if isinstance(sink, str) else sink for sink in wanted)


def _named(name: str) -> Sink:
    if name not in NAMES:
        raise unknown("sink", name, NAMES)
    sink: Sink = plugins.load("leadline.integrations", name, kind="sink")()
    return sink


def scalars(probe: str, name: str, value: Value) -> dict[str, float]:
    """What a tracker gets of a reading: a number as it is, of a profile its least, middle and largest number.

    >>> scalars("weight_norm", "norm", [3.0, 1.0, float("nan")])
    {'weight_norm/norm/min': 1.0, 'weight_norm/norm/median': 2.0, 'weight_norm/norm/max': 3.0}
    >>> scalars("loss", "train/loss", 0.5)
    {'train/loss': 0.5}
    """
    called = name if probe in ("loss", "evaluate") else f"{probe}/{name}"
    if _FINE.match(name):
        return {}
    if isinstance(value, float | int):
        return {called: float(value)}
    known = np.asarray(value, dtype=np.float64)
    known = known[~np.isnan(known)]
    if not known.size:
        return {}
    found = {"min": known.min(), "median": np.median(known), "max": known.max()}
    return {f"{called}/{which}": float(number) for which, number in found.items()}


@dataclass
class Outlet:
    """Hands jobs to a sink on a daemon thread; a sink that fails or falls behind is warned of once, then left."""

    sink: Sink
    room: int = ROOM
    patience: float = PATIENCE
    _jobs: "queue.Queue[tuple[str, tuple[Any, ...]]]" = field(init=False)
    _thread: threading.Thread = field(init=False)
    _lost: bool = False
    _late: bool = False

    def __post_init__(self) -> None:
        self._jobs = queue.Queue(self.room)
        self._thread = threading.Thread(target=self._work, name=f"leadline to {self._name}", daemon=True)
        self._thread.start()

    @property
    def _name(self) -> str:
        return type(self.sink).__name__.lower()

    def put(self, what: str, *arguments: Any) -> None:
        """Calls a method of the sink, some time; returns at once."""
        if self._lost:
            return
        try:
            self._jobs.put_nowait((what, arguments))
        except queue.Full:
            if not self._late:
                self._late = True
                _log.warning("%s cannot keep up; it does not get all readings, the run folder does", self._name)

    def close(self, outcome: Mapping[str, Any] | None) -> None:
        """Lets the sink finish, for as long as patience lasts."""
        if self._lost:
            return
        until = time.monotonic() + self.patience
        try:
            self._jobs.put(("close", (outcome,)), timeout=self.patience)
            self._thread.join(max(0.0, until - time.monotonic()))
        except queue.Full:
            pass
        if self._thread.is_alive():
            self._lost = True
            _log.warning("%s did not finish in %g s and is left alone; the run folder has everything", self._name,
                         self.patience)  # fmt: skip

    def _work(self) -> None:
        what = ""
        while what != "close" and not self._lost:
            what, arguments = self._jobs.get()
            try:
                getattr(self.sink, what)(*arguments)
            except BaseException as error:  # also SystemExit: nothing of a tracker ends somebody's training
                self._lost = True
                said = (str(error).strip().splitlines() or [""])[0]
                _log.warning("%s failed and gets no more readings (%s: %s); the run folder has everything",
                             self._name, type(error).__name__, said)  # fmt: skip


class ForwardingWriter(RunWriter):
    """A writer of a run folder that forwards what it appends, step by step; not what was there already."""

    def __init__(self, folder: Path, *, resume_at: int = 0, sinks: Iterable[Sink] = (), **outlet: Any) -> None:
        self._outlets: list[Outlet] = []
        self._outcome: Mapping[str, Any] | None = None
        self._step, self._scalars = -1, dict[str, float]()
        super().__init__(folder, resume_at=resume_at)
        self._known = self._end
        self._outlets = [Outlet(sink, **outlet) for sink in sinks]

    def describe(self, record: Mapping[str, Any]) -> None:
        super().describe(record)
        self._tell("open", self.folder.path, dict(record))

    def append(self, step: int, probe: str, name: str, value: Value, *, notes: Mapping[int, str] | None = None) -> None:
        super().append(step, probe, name, value, notes=notes)
        if self._outlets and self.position > self._known:
            if step != self._step:
                self._forward()
            self._step = step
            self._scalars |= scalars(probe, name, value)

    def finish(self, outcome: Mapping[str, Any]) -> None:
        super().finish(outcome)
        self._outcome = dict(outcome)

    def close(self) -> None:
        super().close()
        self._forward()
        while self._outlets:
            self._outlets.pop().close(self._outcome)

    def _forward(self) -> None:
        if self._scalars:
            self._tell("log", self._step, self._scalars)
            self._scalars = {}

    def _tell(self, what: str, *arguments: Any) -> None:
        for outlet in self._outlets:
            outlet.put(what, *arguments)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def writing(folder: Path, *, resume_at: int = 0, sinks: Sequence[Sink] = ()) -> RunWriter:
    """The writer of a run folder, forwarding if there is anywhere to."""
    if not sinks:
        return RunWriter(folder, resume_at=resume_at)
    return ForwardingWriter(folder, resume_at=resume_at, sinks=sinks)
