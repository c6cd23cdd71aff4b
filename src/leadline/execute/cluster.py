"""Executes many units as tasks of a Ray cluster, or of a Ray started here; folders are all they share."""

import json
import logging
import os
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leadline.core.errors import UsageError
from leadline.core.study import Unit
from leadline.execute.pool import ATTEMPTS, GRACE_SECONDS, LISTEN_SECONDS, ONE_THREAD, _environment
from leadline.execute.run_one import Settings, Stopped
from leadline.execute.unit import Outcome, Overseer, Trouble, Unseen, attempt, done
from leadline.store.layout import RunFolder

LOSSES = 5
"""So many times a unit is started again whose worker or node went away: that says little about the unit."""
LOOK_SECONDS = 2.0
VISIBLE_SECONDS = 60.0
"""How long a network file system may take to show what another node has written."""
ANSWER_SECONDS = 5.0
PASSED_ON = ("LEADLINE_DATA", "LEADLINE_MIRROR")
"""Variables of the caller that tasks are given too, on whatever node."""
STORE_BYTES = 80 * 2**20
TAIL_BYTES = 4096


def execute(
    units: Sequence[Unit],
    root: Path,
    *,
    address: str = "auto",
    workers: int | None = None,
    gpus: float = 0.0,
    settings: Settings | None = None,
    progress: Overseer | None = None,
) -> Iterator[Outcome]:
    """Every unit in turn, each once, as it ends, as `execute.pool.execute` does; readings are the same.

    `address` is that of a cluster, or "auto": the one this machine belongs to, else a Ray of this machine alone, on
    loopback, with as many tasks at once as `workers`. A task takes one core and the share `gpus` of a GPU (0.25: four
    on one), and on no share means the CPU. All nodes have to see `root` under the same path.
    """
    settings, progress = settings or Settings(), progress or Unseen()
    distinct = list({unit.identity: unit for unit in units}.values())
    yield from (Outcome(unit, root / unit.identity) for unit in distinct if done(unit, root))
    left = [unit for unit in distinct if not done(unit, root)]
    if left:
        root.mkdir(parents=True, exist_ok=True)
        with _connected(address, workers, gpus, progress) as ray:
            yield from _Tasks(ray, root.resolve(), settings, progress, gpus).run(left)


@dataclass
class _Tasks:
    """Hands all units to Ray, which decides when and where; starts again what was lost."""

    ray: Any
    root: Path
    settings: Settings
    progress: Overseer
    gpus: float
    running: dict[Any, Unit] = field(default_factory=dict)
    tried: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    seen: set[str] = field(default_factory=set)
    looked: float = 0.0

    def run(self, units: Sequence[Unit]) -> Iterator[Outcome]:
        # Ray's own retries would do the same unseen: neither counted nor told
        told = ONE_THREAD | {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        options = {"num_cpus": 1, "num_gpus": self.gpus, "max_retries": 0, "runtime_env": {"env_vars": told}}
        self.task = self.ray.remote(**options)(_work)
        for unit in units:
            self._submit(unit)
        try:
            while self.running:
                ready, _ = self.ray.wait(list(self.running), timeout=LISTEN_SECONDS)
                for reference in ready:
                    yield from self._ended(self.running.pop(reference), reference)
                self._look()
                if self.settings.stop():
                    raise Stopped("stopped; the same command goes on from there")
        finally:
            self._cancel()

    def _submit(self, unit: Unit) -> None:
        device = self.settings.device if self.gpus or self.settings.device != "auto" else "cpu"
        reference = self.task.remote(unit, self.root, device, self.settings.checkpoint_seconds)
        self.running[reference] = unit

    def _ended(self, unit: Unit, reference: Any) -> Iterator[Outcome]:
        gone, trouble = self._result(reference)
        counts, most = (self.lost, LOSSES) if gone else (self.tried, ATTEMPTS)
        counts[unit.identity] += 1
        if trouble and trouble.again and counts[unit.identity] < most:
            self.progress.note(f"{unit.identity}: {trouble.error}; tried once more")
            self.seen.discard(unit.identity)
            self._submit(unit)
            return
        error = trouble.error if trouble else self._unseen(unit)
        attempts = self.tried[unit.identity] + self.lost[unit.identity]
        yield Outcome(unit, self.root / unit.identity, error, attempts)

    def _result(self, reference: Any) -> tuple[bool, Trouble | None]:
        """Whether the task went away, and what it came to."""
        try:
            return False, self.ray.get(reference)
        except self.ray.exceptions.RayTaskError as error:
            return False, Trouble(_first_line(error), again=True)
        except self.ray.exceptions.RayError as error:
            return True, Trouble(f"its worker went away: {_first_line(error)}", again=True)

    def _unseen(self, unit: Unit) -> str:
        """What is wrong if a finished unit has no finished folder here."""
        end = time.monotonic() + VISIBLE_SECONDS
        while not done(unit, self.root):
            if time.monotonic() > end:
                return (
                    f"finished on another node, but {self.root} shows nothing; expected a folder that all nodes share"
                )
            time.sleep(LISTEN_SECONDS)
        return ""

    def _look(self) -> None:
        """How far runs are is read off their folders: whoever can see the results can see that."""
        if time.monotonic() - self.looked < LOOK_SECONDS:
            return
        self.looked = time.monotonic()
        for unit in self.running.values():
            folder = RunFolder(self.root / unit.identity)
            if folder.run_json.exists() and folder.state() == "growing":
                if unit.identity not in self.seen:
                    self.seen.add(unit.identity)
                    self.progress.started(unit)
                if (share := _share(folder)) is not None:
                    self.progress.advanced(unit, share)

    def _cancel(self) -> None:
        """Waiting tasks are dropped, running ones finish the step in hand and write a checkpoint."""
        for reference in self.running:
            self.ray.cancel(reference)
        if self.running:
            self.ray.wait(list(self.running), num_returns=len(self.running), timeout=GRACE_SECONDS)


def _work(unit: Unit, root: Path, device: str, checkpoint_seconds: float) -> Trouble | None:
    """What a task does: one attempt at one unit, as in any other process; cancelling it is asking it to stop."""
    asked = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: asked.set())
    if not root.is_dir():
        node = os.uname().nodename
        return Trouble(f"node {node} does not see {root}; expected a folder that all nodes share", again=True)
    while RunFolder(root / unit.identity).state() == "growing" and not asked.wait(LISTEN_SECONDS):
        pass  # somebody else is writing it
    settings = Settings(device=device, checkpoint_seconds=checkpoint_seconds, stop=asked.is_set)
    try:
        return attempt(unit, root, settings)
    except Stopped as stopped:
        return Trouble(str(stopped), again=False)


def _share(folder: RunFolder) -> float | None:
    """The share of its steps that a run has made, by its last whole reading; None where that is not known."""
    with suppress(OSError, ValueError, KeyError, TypeError, IndexError):
        steps = json.loads(folder.run_json.read_bytes())["steps"]
        with folder.readings.open("rb") as handle:
            handle.seek(max(0, folder.readings.stat().st_size - TAIL_BYTES))
            last = handle.read().rsplit(b"\n", 2)[-2]
        return float((json.loads(last)["step"] + 1) / steps)
    return None


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


# -- connecting ------------------------------------------------------------------------------------------------------


@contextmanager
def _connected(address: str, workers: int | None, gpus: float, progress: Overseer) -> Iterator[Any]:
    """Ray, connected; let go of again unless the caller was connected already."""
    if gpus < 0 or (gpus > 1 and gpus != int(gpus)):
        raise UsageError(f"--gpus {gpus:g}: expected a share from 0 to 1, or a whole number")
    ray = _ray()
    if ray.is_initialized():
        yield ray
        return
    handler = signal.getsignal(signal.SIGTERM)
    logging.getLogger("ray").setLevel(logging.ERROR)
    plain = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": False}
    joined = _joined(ray, address, plain)
    if not joined:
        _start(ray, workers, plain)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, handler)
    try:
        if gpus and not ray.cluster_resources().get("GPU"):
            if not joined:
                raise UsageError(f"--gpus {gpus:g}: this machine has none, and there is no Ray cluster")
            progress.note(f"no node of the Ray cluster has a GPU now; runs that want {gpus:g} wait until one joins")
        yield ray
    finally:
        ray.shutdown()


def _ray() -> Any:
    # without this Ray reports to its makers
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ModuleNotFoundError:
        raise UsageError("Ray is not installed; pip install 'leadline[cluster]'") from None
    return ray


def _joined(ray: Any, address: str, plain: dict[str, Any]) -> bool:
    """Whether a cluster is there to work on; a named one has to be, and what it was named by wins."""
    named = address if address != "auto" else os.environ.get("RAY_ADDRESS", "")
    found = named or _last_started()
    if not found or not _answers(found):
        if named:
            raise UsageError(f"no Ray cluster answers at {named!r}; expected auto or HOST:PORT")
        return False
    # of a loopback address Ray makes the machine's outer one, where a Ray on loopback does not answer
    host, _, port = found.rpartition(":")
    outside = not _is_loopback(host) or _answers(f"{ray.util.get_node_ip_address()}:{port}")
    try:
        with _environment({"RAY_ADDRESS": found}), nullcontext() if outside else _on_loopback():
            ray.init(address=found, **plain)
    except (ConnectionError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
        raise UsageError(f"the Ray cluster at {found!r} does not let us in: {_first_line(error)}") from None
    return True


def _last_started() -> str:
    """The address of the cluster that `ray start` made this machine a part of, if any."""
    from ray._private.utils import read_ray_address

    return read_ray_address() or ""


def _answers(address: str) -> bool:
    """Whether anything listens there; Ray itself would try for many minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWER_SECONDS).close()
    except (OSError, ValueError, OverflowError):
        return False
    return True


def _is_loopback(host: str) -> bool:
    return host == "localhost" or host.startswith("127.")


def _start(ray: Any, workers: int | None, plain: dict[str, Any]) -> None:
    """A Ray of this machine alone, which listens on loopback only."""
    with _on_loopback():
        ray.init(
            address="local",
            num_cpus=workers or os.cpu_count(),
            include_dashboard=False,
            object_store_memory=STORE_BYTES,
            _node_ip_address="127.0.0.1",
            **plain,
        )


@contextmanager
def _on_loopback() -> Iterator[None]:
    """Told 127.0.0.1 alone, Ray takes the machine's outer address instead and listens on all; inside it does not."""
    from ray._private import ray_constants

    former, ray_constants.ENABLE_RAY_CLUSTER = ray_constants.ENABLE_RAY_CLUSTER, False
    try:
        with _environment({"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}):
            yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = former
