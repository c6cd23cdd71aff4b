"""Trackers beside none, and a pool of two workers beside two processes started by hand.

Sinks: one recorded step of ResNet-20 at batch 128 (`light`, every step) with each tracker, on files of its own, beside
the bare step and the recorded step without; CPU seconds of the process, the trackers' threads included. Pool: two runs
of the digits, started by the pool, and each by `python -c` at the same moment; wall clock from start to end, in turn.
Draw no conclusion from the pool's rows on a machine that does anything else.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from harness import Row, Timing, interleave, ratio_row, run
from recording import Loop
from torch import Tensor

import leadline as ll
from leadline.core.config import RunConfig
from leadline.execute.pool import execute

TRACKERS = ("tensorboard", "wandb", "mlflow")
BATCH, STEPS = 128, 150
CODE = """
import sys
from pathlib import Path
from leadline.core.config import RunConfig
from leadline.execute.run_one import run_one
run_one(RunConfig.model_validate_json(sys.argv[1]), Path(sys.argv[2]))
"""


class Recorded(Loop):
    """A step recorded with these sinks."""

    def __init__(self, folder: Path, *sinks: str) -> None:
        super().__init__("resnet-20", BATCH)
        self.recorder = ll.Recorder(self.model, folder, probes="light", sinks=sinks).attach()

    def after(self, loss: Tensor) -> None:
        self.recorder.step(loss)


def sinks(rounds: int) -> list[Row]:
    os.environ |= {"WANDB_MODE": "offline", "WANDB_SILENT": "true"}
    with ExitStack() as stack:
        root = Path(stack.enter_context(TemporaryDirectory()))
        sides: dict[str, Loop] = {"bare step": Loop("resnet-20", BATCH), "no sink": Recorded(root / "none")}
        sides |= {name: Recorded(root / name, name) for name in TRACKERS}
        times = interleave(sides, rounds=rounds, warm_up=2)
        for side in sides.values():
            if isinstance(side, Recorded):
                side.recorder.detach()
    note = f"a bare step {1e3 * times['bare step'].median:.0f} ms"
    return [
        ratio_row(f"light every step, {name}", top=times[name], bottom=times["bare step"], bar=1.05, at_most=True,
                  note=note)
        for name in ("no sink", *TRACKERS)
    ]  # fmt: skip


def runs(rounds: int) -> Row:
    configs = [
        RunConfig.parse({"model": "resnet-20", "training": {"steps": STEPS}, "probes": ["light"], "seed": seed})
        for seed in range(2)
    ]
    seconds: dict[str, list[float]] = {"pool of 2": [], "two processes by hand": []}
    sides: dict[str, Callable[[list[RunConfig], Path], None]] = {"pool of 2": pooled, "two processes by hand": by_hand}
    for number in range(rounds):
        for name in list(sides) if number % 2 else reversed(list(sides)):
            with TemporaryDirectory() as folder:
                start = time.perf_counter()
                sides[name](configs, Path(folder))
                seconds[name].append(time.perf_counter() - start)
    top, bottom = (Timing(name, tuple(values)) for name, values in seconds.items())
    note = f"{bottom.median:.1f} s for two runs of {STEPS} steps, imports included"
    return ratio_row("pool of 2, wall clock", top=top, bottom=bottom, bar=1.05, at_most=True, note=note)


def pooled(configs: list[RunConfig], folder: Path) -> None:
    assert all(outcome.finished for outcome in execute(configs, folder, workers=2))


def by_hand(configs: list[RunConfig], folder: Path) -> None:
    words = [[sys.executable, "-c", CODE, config.model_dump_json(), str(folder)] for config in configs]
    processes = [subprocess.Popen(each) for each in words]
    assert [process.wait() for process in processes] == [0, 0]


def measure(rounds: int) -> list[Row]:
    torch.set_num_threads(1)
    return [*sinks(4 * rounds), runs(rounds)]


if __name__ == "__main__":
    run(measure, description=__doc__, rounds=5)
