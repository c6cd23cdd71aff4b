"""A thousand layers: peak memory of a training step with and without block checkpointing, and time against depth.

Memory is the high-water mark (VmHWM of /proc/self/status, which starts anew in each process) of one step of batch 8 on
32x32 images in a process of its own, whole and above what the process held before the step. The processes give freed
memory back at once (MALLOC_MMAP_THRESHOLD_=65536), so that memory in use is what is measured: glibc before 2.38 cannot
reuse freed aligned blocks and keeps most of it otherwise; the note gives the figures of that default as well. Time is
process CPU time of whole steps with checkpointing, all depths taken in turn, fitted by a line.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from harness import Row, interleave, run
from torch.nn import functional

from leadline import models

BATCH = 8
DEPTHS = (164, 326, 632, 1001)
FAMILIES: dict[str, tuple[int, dict[str, Any]]] = {"resnet": (0, {"block": "bottleneck"}), "procresnet": (2, {})}


def step(name: str, *, checkpoint: bool, **options: Any) -> Callable[[], object]:
    """Forward, backward and update of a network on one batch of noise."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = models.create(name, **options)
    model.checkpoint_blocks = checkpoint
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    images, labels = torch.randn(BATCH, 3, 32, 32), torch.randint(10, (BATCH,))

    def once() -> object:
        optimizer.zero_grad(set_to_none=True)
        functional.cross_entropy(model(images), labels).backward()
        return optimizer.step()

    return once


def resident(what: str) -> float:
    """VmRSS (now) or VmHWM (peak) of this process in MB."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{what}:")) / 1024


def in_process(name: str, options: dict[str, Any], *, checkpoint: bool, exact: bool = True) -> tuple[float, float]:
    """(peak, peak above what was there before the step) in MB, in a new process."""
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import depth_scaling as d; "
        f"once = d.step({name!r}, checkpoint={checkpoint}, **{options!r}); before = d.resident('VmRSS'); once(); "
        "print(d.resident('VmHWM'), d.resident('VmHWM') - before)"
    )
    allocator = {"MALLOC_MMAP_THRESHOLD_": "65536"} if exact else {}
    environment = {**os.environ, **allocator}
    done = subprocess.run([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True, check=True)
    peak, above = map(float, done.stdout.split())
    return peak, above


def memory(name: str, options: dict[str, Any]) -> list[Row]:
    """Peak of the whole process, and of the step alone, with checkpointing over without."""
    (kept, kept_above), (spared, spared_above) = (in_process(name, options, checkpoint=on) for on in (False, True))
    (_, large), (_, small) = (in_process(name, options, checkpoint=on, exact=False) for on in (False, True))
    default = f"; with the default allocator {small:.0f} MB against {large:.0f} MB"
    found = [("whole process", spared, kept, ""), ("step alone", spared_above, kept_above, default)]
    return [
        Row(
            what=f"{name}, batch {BATCH}: peak memory, {what}",
            against="no checkpointing",
            value=small / large,
            bar=1 / 3,
            at_most=True,
            note=f"{small:.0f} MB against {large:.0f} MB{note}",
        )
        for what, small, large, note in found
    ]


def linear(family: str, *, extra: int, options: dict[str, Any], rounds: int) -> Row:
    """R^2 of time per step = a + b depth over the depths."""
    depths = [depth + extra for depth in DEPTHS]
    timings = interleave(
        {str(depth): step(f"{family}-{depth}", checkpoint=True, **options) for depth in depths}, rounds=rounds
    )
    seconds = np.array([timing.median for timing in timings.values()])
    slope, start = np.polyfit(depths, seconds, 1)
    residual = seconds - (start + slope * np.array(depths))
    return Row(
        what=f"{family}, batch {BATCH}: R^2 of a line through time per step at depths {', '.join(timings)}",
        against="a line",
        value=1 - float((residual**2).sum() / ((seconds - seconds.mean()) ** 2).sum()),
        bar=0.99,
        at_most=False,
        note=f"{', '.join(f'{s:.2f}' for s in seconds)} s; {1000 * slope:.2f} ms per layer, {start:+.2f} s",
    )


def measure(rounds: int) -> Sequence[Row]:
    rows: list[Row] = []
    for family, (extra, options) in FAMILIES.items():
        rows += memory(f"{family}-{DEPTHS[-1] + extra}", options)
        rows.append(linear(family, extra=extra, options=options, rounds=rounds))
    return rows


if __name__ == "__main__":
    run(measure, description=__doc__, rounds=5)
