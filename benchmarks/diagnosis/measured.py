"""Checks the cases of one part: a run folder each, and beside it what the naive baselines go by.

The folders stand outside the repository, so that this can be stopped and started at will; `evidence.py` makes one small
file of them. Which rates a rehearsal tries depends a little on the rules: numbers for the record come from folders
that were made anew. Cases are shown other batches, in another order, than the truth was made with.
"""

import json
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from cases import Case, cases
from evidence import BASELINES
from torch import nn
from torch.nn import functional
from truth import batches, smooth

from leadline.execute.check import STEPS, check

Batch = tuple[torch.Tensor, torch.Tensor]

OTHER_BATCHES = 1000
"""Added to the case's seed."""


def measure(part: str, cache: Path) -> None:
    """Checks every case of the part that is not in the cache yet."""
    wanted = [case for case in cases() if case.part == part and not (cache / case.id / BASELINES).exists()]
    for count, case in enumerate(wanted, 1):
        shown = batches(case.seed + OTHER_BATCHES, case.fault == "labels")[:STEPS]
        net = case.build()
        start = time.process_time()
        found = check(
            *(net, shown[0], functional.cross_entropy, optimizer_of(case, net)),
            batches=shown[1:],
            budget=600.0,
            to=cache / case.id,
        )
        seconds = round(time.process_time() - start, 2)
        known = {"seconds": seconds, **baselines(case, shown)}
        (cache / case.id / BASELINES).write_text(json.dumps(known))
        root = found.root.id if found.root else "-"
        sys.stderr.write(f"{count}/{len(wanted)} {case.group}: {found.verdict}, {root} ({seconds} s)\n")


def baselines(case: Case, shown: Sequence[Batch]) -> dict[str, float]:
    """Gradient norms at the start, and the loss after the same number of steps."""
    net = case.build()
    functional.cross_entropy(net(shown[0][0]), shown[0][1]).backward()
    norms = [float(p.grad.norm()) for p in net.parameters() if p.grad is not None]
    last = norms[-2] if len(norms) > 1 else norms[-1]
    return {"global": math.hypot(*norms), "last": last, "loss": smooth(losses(case.build(), case, shown))}


def losses(net: nn.Module, case: Case, shown: Sequence[Batch]) -> list[float]:
    """The training losses over the batches that the check was shown."""
    optimizer = optimizer_of(case, net)
    found = []
    for inputs, targets in shown:
        loss = functional.cross_entropy(net(inputs), targets)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def optimizer_of(case: Case, net: nn.Module) -> torch.optim.Optimizer:
    """As the truth was made with."""
    wanted = [parameter for parameter in net.parameters() if parameter.requires_grad]
    if case.optimizer == "sgd":
        return torch.optim.SGD(wanted, lr=case.rate, momentum=0.9)
    return torch.optim.Adam(wanted, lr=case.rate)
