"""Makes the truth of the diagnosis benchmark: trains every case and its twin, and keeps one line for each.

`python benchmarks/diagnosis/truth.py` adds to truth.csv what is missing there; it can be stopped and started at will,
and two of them share the work with `--worker 0/2` and `--worker 1/2`. `cases.py` says what the classes mean.
"""

import argparse
import csv
import math
import os
import sys
import time
from functools import cache
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from cases import RATES, Case, cases
from torch import Tensor, nn
from torch.nn import functional

from leadline.data import Batches, load

HERE = Path(__file__).parent
STEPS = 200
CHANCE = math.log(10)
GRID = (0.25, 1.0, 4.0)
COLUMNS = (
    "id",
    "part",
    "group",
    "net",
    "depth",
    "optimizer",
    "rate",
    "fault",
    "construction",
    "cause",
    "seed",
    "truth",
)
MEASURED = ("reach", "lowest", "last", "reach_slower", "reach_faster", "twin_reach", "seconds")


@cache
def batches(seed: int, shuffled: bool) -> list[tuple[Tensor, Tensor]]:
    """The batches of all steps; with `shuffled`, every label is drawn anew each time it is shown."""
    digits = load("digits")
    cut = Batches(digits.train, batch_size=64, seed=seed, normalise=(digits.mean, digits.std))
    found = [batch for epoch in range(1 + STEPS // len(cut)) for batch in cut.epoch(epoch)][:STEPS]
    if not shuffled:
        return found
    generator = torch.Generator().manual_seed(seed)
    return [(inputs, torch.randint(10, (len(inputs),), generator=generator)) for inputs, _ in found]


def losses(net: nn.Module, case: Case, rate: float, *, shuffled: bool = False) -> list[float]:
    """The training losses; the run ends early once it has come well below C / 2, or is lost."""
    wanted = [parameter for parameter in net.parameters() if parameter.requires_grad]
    make = {
        "sgd": lambda: torch.optim.SGD(wanted, lr=rate, momentum=0.9),
        "adam": lambda: torch.optim.Adam(wanted, lr=rate),
    }
    optimizer = make[case.optimizer]()
    found: list[float] = []
    for inputs, targets in batches(case.seed, shuffled):
        loss = functional.cross_entropy(net(inputs), targets)
        found.append(loss.item())
        if not math.isfinite(found[-1]) or smooth(found) < 0.3 * CHANCE:
            break
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    return found


def smooth(values: list[float]) -> float:
    """The mean of the last ten; infinite before there are ten."""
    return sum(values[-10:]) / 10 if len(values) >= 10 else math.inf


def curve(values: list[float]) -> list[float]:
    return [smooth(values[:k]) for k in range(10, len(values) + 1)]


def reach(values: list[float]) -> float:
    """T: the first step at which the smoothed loss is at most C / 2."""
    return next((step + 10 for step, value in enumerate(curve(values)) if value <= CHANCE / 2), math.inf)


def judge(values: list[float], twin: float) -> str:
    """The class, by the definitions of `cases.py`."""
    smoothed = curve(values)
    lost = not all(map(math.isfinite, values)) or min(smoothed, default=math.inf) >= 0.9 * CHANCE
    if lost or smoothed[-1] >= 0.9 * CHANCE:
        return "does not train"
    return "trains" if reach(values) <= 3 * twin + 10 else "trains slowly"


def cause(case: Case, truth: str, slower: list[float], faster: list[float], *, twin: float) -> str:
    """Why it does not train, by the definitions of `cases.py`."""
    if truth == "trains":
        return "none"
    if judge(slower, twin) == "trains":
        return "learning rate too high"
    return "learning rate too low" if judge(faster, twin) == "trains" else case.construction


def measure(case: Case, twins: dict[str, float]) -> dict[str, object]:
    """One line of the truth."""
    start = time.process_time()
    key = repr((case.net, case.args["depth"], case.optimizer, case.seed))
    if key not in twins:
        rates = [RATES[case.optimizer] * factor for factor in GRID]
        twins[key] = min(reach(losses(case.build_twin(), case, rate)) for rate in rates)
    slower, asked, faster = (
        losses(case.build(), case, case.rate * factor, shuffled=case.fault == "labels") for factor in GRID
    )
    truth = judge(asked, twins[key])
    known = {
        "id": case.id,
        "part": case.part,
        "group": case.group,
        "net": case.net,
        "depth": case.args["depth"],
        "optimizer": case.optimizer,
        "rate": case.rate,
        "fault": case.fault,
        "construction": case.construction,
        "cause": cause(case, truth, slower, faster, twin=twins[key]),
        "seed": case.seed,
        "truth": truth,
    }
    found = {
        "reach": reach(asked),
        "lowest": round(min(curve(asked), default=math.inf), 4),
        "last": round(asked[-1], 4),
        "reach_slower": reach(slower),
        "reach_faster": reach(faster),
        "twin_reach": twins[key],
        "seconds": round(time.process_time() - start, 1),
    }
    return {**known, **found}


def done(path: Path) -> set[str]:
    if not path.exists():
        return set()
    with path.open(newline="") as handle:
        return {row["id"] for row in csv.DictReader(handle)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worker", default="0/1", help="K/N: take every N-th case, from K on")
    options = parser.parse_args()
    number, of = map(int, options.worker.split("/"))
    torch.set_num_threads(1)
    path = HERE / "truth.csv"
    ready, twins = done(path), dict[str, float]()
    mine = [case for index, case in enumerate(cases()) if index % of == number and case.id not in ready]
    for count, case in enumerate(mine, 1):
        row = measure(case, twins)
        new = not path.exists()
        with path.open("a", newline="") as handle:
            writer = csv.DictWriter(handle, [*COLUMNS, *MEASURED], lineterminator="\n")
            if new:
                writer.writeheader()
            writer.writerow(row)
        sys.stderr.write(f"{count}/{len(mine)} {case.group} {case.args} {row['truth']} ({row['seconds']} s)\n")


if __name__ == "__main__":
    main()
