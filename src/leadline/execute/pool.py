"""Executes many units in processes of this machine: one torch thread each, a crashed unit tried once more."""

import multiprocessing
import os
import signal
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from multiprocessing.synchronize import Event
from pathlib import Path

from leadline.core.study import Unit
from leadline.execute.run_one import Settings, Stopped
from leadline.execute.unit import Outcome, Overseer, Trouble, Unseen, attempt, done
from leadline.store.layout import RunFolder
from leadline.train.evaluate import Score

ATTEMPTS = 2
LISTEN_SECONDS = 0.2
GRACE_SECONDS = 30.0
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


def execute(
    units: Sequence[Unit],
    root: Path,
    *,
    workers: int = 1,
    settings: Settings | None = None,
    progress: Overseer | None = None,
) -> Iterator[Outcome]:
    """Every unit in turn, each once, as it ends; units that are done already come first and cost nothing.

    With `workers=0` everything runs in this process. Readings are the same either way. A unit that another process is
    writing is waited for. Raises Stopped when `settings.stop` says so, with every folder left so that it can go on.
    """
    settings, progress = settings or Settings(), progress or Unseen()
    distinct = list({unit.identity: unit for unit in units}.values())
    yield from (Outcome(unit, root / unit.identity) for unit in distinct if done(unit, root))
    left = [unit for unit in distinct if not done(unit, root)]
    if left and workers:
        yield from _Pool(root, settings, progress, deque((unit, 1) for unit in left)).run(min(workers, len(left)))
    else:
        yield from (_here(unit, root, settings, progress) for unit in left)


def _here(unit: Unit, root: Path, settings: Settings, progress: Overseer) -> Outcome:
    attempts = 0
    while True:
        progress.started(unit)
        trouble, attempts = attempt(unit, root, replace(settings, threads=1)), attempts + 1
        if not trouble or not trouble.again or attempts == ATTEMPTS:
            return Outcome(unit, root / unit.identity, trouble.error if trouble else "", attempts)


@dataclass
class _Worker:
    """A process, the pipe to it, and what it is at."""

    process: SpawnProcess
    pipe: Connection
    unit: Unit | None = None
    number: int = 0


@dataclass
class _Pool:
    """Hands units to processes and replaces those that die."""

    root: Path
    settings: Settings
    progress: Overseer
    waiting: deque[tuple[Unit, int]]
    workers: list[_Worker] = field(default_factory=list)

    def run(self, count: int) -> Iterator[Outcome]:
        context = multiprocessing.get_context("spawn")
        stop = context.Event()
        try:
            while self.waiting or any(worker.unit for worker in self.workers):
                self._staff(context, stop, count)
                self._assign()
                yield from self._listen()
                if self.settings.stop():
                    raise Stopped("stopped; the same command goes on from there")
        finally:
            stop.set()
            self._dismiss()

    def _staff(self, context: multiprocessing.context.SpawnContext, stop: Event, count: int) -> None:
        needed = min(count, len(self.waiting) + sum(worker.unit is not None for worker in self.workers))
        while len(self.workers) < needed:
            ours, theirs = context.Pipe()
            plain = (self.settings.device, self.settings.checkpoint_seconds)
            process = context.Process(target=_work, args=(theirs, stop, self.root, *plain), daemon=True)
            with _environment(ONE_THREAD):
                process.start()
            theirs.close()
            self.workers.append(_Worker(process, ours))

    def _assign(self) -> None:
        for worker in self.workers:
            if worker.unit is None and (found := self._next()):
                worker.unit, worker.number = found
                self.progress.started(worker.unit)
                worker.pipe.send(worker.unit)

    def _next(self) -> tuple[Unit, int] | None:
        """The first waiting unit that nobody else is writing."""
        for _ in range(len(self.waiting)):
            unit, number = self.waiting.popleft()
            if RunFolder(self.root / unit.identity).state() != "growing":
                return unit, number
            self.waiting.append((unit, number))
        return None

    def _listen(self) -> Iterator[Outcome]:
        pipes = [worker.pipe for worker in self.workers if worker.unit]
        if not pipes:
            time.sleep(LISTEN_SECONDS)
        ready = wait(pipes, LISTEN_SECONDS) if pipes else []
        for worker in [worker for worker in self.workers if worker.pipe in ready]:
            try:
                said = worker.pipe.recv()
            except (EOFError, OSError):
                worker.process.join()
                self.workers.remove(worker)
                yield from self._ended(worker, Trouble(_death(worker.process.exitcode), again=True))
                continue
            if isinstance(said, float):
                self.progress.advanced(_at(worker), said)
            elif isinstance(said, str):
                self.progress.note(f"{_at(worker).identity}: {said}")
            else:
                yield from self._ended(worker, said)

    def _ended(self, worker: _Worker, trouble: Trouble | None) -> Iterator[Outcome]:
        unit, number = _at(worker), worker.number
        worker.unit = None
        if trouble and trouble.again and number < ATTEMPTS:
            self.progress.note(f"{unit.identity}: {trouble.error}; tried once more")
            self.waiting.append((unit, number + 1))
        else:
            yield Outcome(unit, self.root / unit.identity, trouble.error if trouble else "", number)

    def _dismiss(self) -> None:
        """Idle processes leave at once, busy ones finish the step in hand, and nobody stays."""
        for worker in self.workers:
            worker.pipe.close()
        end = time.monotonic() + GRACE_SECONDS
        for worker in self.workers:
            worker.process.join(max(0.0, end - time.monotonic()))
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()


def _at(worker: _Worker) -> Unit:
    assert worker.unit is not None
    return worker.unit


def _death(code: int | None) -> str:
    if code is not None and code < 0:
        return f"its process was killed by {signal.Signals(-code).name}"
    return f"its process ended with exit code {code}"


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """The environment that processes started inside are given."""
    former = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in former.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _work(pipe: Connection, stop: Event, root: Path, device: str, checkpoint_seconds: float) -> None:
    """What a process does: one unit after another until the pipe closes; an orphan stops."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = os.getppid()
    settings = Settings(
        device=device,
        checkpoint_seconds=checkpoint_seconds,
        stop=lambda: stop.is_set() or os.getppid() != parent,
    )
    try:
        while True:
            unit = pipe.recv()
            pipe.send(attempt(unit, root, settings, _Reporter(pipe)))
    except (EOFError, OSError, Stopped):
        return


@dataclass
class _Reporter:
    """Tells the parent how far a run is, a few times a second at most."""

    pipe: Connection
    _steps: int = 0
    _said: float = 0.0

    def begin(self, name: str, *, step: int, steps: int, batch: int) -> None:  # noqa: ARG002
        self._steps = steps
        if step:
            self.note(f"goes on from step {step} of {steps}")

    def advance(self, step: int, loss: float) -> None:  # noqa: ARG002
        now = time.monotonic()
        if self._steps and now - self._said > LISTEN_SECONDS:
            self._said = now
            self._send(step / self._steps)

    def scored(self, step: int, score: Score) -> None: ...

    def note(self, text: str) -> None:
        self._send(text)

    def end(self) -> None: ...

    def _send(self, what: float | str) -> None:
        # a parent that has gone is noticed by `stop`
        with suppress(OSError):
            self.pipe.send(what)
