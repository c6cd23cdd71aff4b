"""A nursery of processes: one that has imported everything forks real ones, which are killed for real.

To import torch costs seconds, to fork a process that has it milliseconds. What a child is given is `module:function`
with arguments; it ends with what the command would end with, and what it says goes to files.
"""

import importlib
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leadline.core.errors import LeadlineError

ENVIRONMENT = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


@dataclass(frozen=True)
class Ended:
    """How a process ended, the CPU seconds it had, and what it said."""

    code: int
    seconds: float
    out: str
    err: str

    @property
    def killed(self) -> bool:
        return self.code == -signal.SIGKILL


@dataclass(frozen=True)
class Child:
    """A running process of the nursery."""

    nursery: "Nursery"
    pid: int
    said: str

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Sends a signal; a process that has ended meanwhile is still there to take it."""
        os.kill(self.pid, number)

    def kill_after(self, seconds: float) -> None:
        """Kills it after so many seconds of its own CPU time, so that a busy machine moves no kill."""
        times = Path(f"/proc/{self.pid}/schedstat")
        while float(times.read_text().split()[0]) < 1e9 * seconds and not self._ended():
            time.sleep(0.002)
        self.kill()

    def _ended(self) -> bool:
        return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"

    def wait(self) -> Ended:
        code, seconds = self.nursery.ask({"wait": self.pid})
        out, err = (Path(f"{self.said}.{name}").read_text(encoding="utf-8") for name in ("out", "err"))
        return Ended(int(code), seconds, out, err)


@dataclass
class Nursery:
    """Starts processes; `ask` is one question and one answer on a pipe."""

    process: "subprocess.Popen[str]"
    folder: Path
    count: int = 0

    def start(self, call: str, **arguments: Any) -> Child:
        """A new process that calls `module:function`."""
        self.count += 1
        said = str(self.folder / str(self.count))
        pid, _ = self.ask({"call": call, "arguments": arguments, "said": said})
        return Child(self, int(pid), said)

    def command(self, *words: object) -> Child:
        """A new process that runs the command with these words."""
        return self.start("faults.nursery:command", words=[str(word) for word in words])

    def ask(self, question: dict[str, Any]) -> tuple[float, float]:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        first, second = json.loads(self.process.stdout.readline())
        return first, second


@contextmanager
def nursery(folder: Path) -> Iterator[Nursery]:
    """A nursery whose processes speak into files in `folder`."""
    environment = {**os.environ, **ENVIRONMENT, "PYTHONPATH": str(Path(__file__).parents[1])}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-m", "faults.nursery"], env=environment, **pipes) as process:
        yield Nursery(process, folder)


def command(words: Sequence[str]) -> int:
    from leadline.cli import main

    return main(words)


def _born(question: dict[str, Any]) -> int:
    """What a child does: never returns into the loop of its parent."""
    for number, name in enumerate(("out", "err"), 1):
        os.dup2(os.open(f"{question['said']}.{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    module, _, name = question["call"].partition(":")
    try:
        return int(getattr(importlib.import_module(module), name)(**question["arguments"]) or 0)
    except SystemExit as ended:
        return int(ended.code or 0)
    except LeadlineError as error:
        sys.stderr.write(f"leadline: {error}\n")
        return error.exit_code
    except BaseException:
        traceback.print_exc()
        return 70
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def _serve() -> None:
    import torch

    import leadline.cli.check
    import leadline.cli.train
    import leadline.execute.check
    import leadline.execute.pool
    import leadline.execute.run_one  # noqa: F401 - here once, for all children

    torch.optim.SGD([torch.zeros(1)])  # the first optimiser imports half of torch
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        question, seconds = json.loads(line), 0.0
        if "wait" in question:
            _, status, used = os.wait4(question["wait"], 0)
            answer, seconds = os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime
        elif not (answer := os.fork()):
            os._exit(_born(question))
        answers.write(f"{json.dumps([answer, seconds])}\n")
        answers.flush()


if __name__ == "__main__":
    _serve()
