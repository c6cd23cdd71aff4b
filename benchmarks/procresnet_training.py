"""A small ProcResNet on CIFAR-10: how far its kernels leave the set, and what its transitions do to gradients.

Trained three times from one seed: projected after every step, on the paper's schedule (Algorithm 1 every second step),
and an ordinary pre-activation ResNet of the same depth beside them. Prints, for each kernel, the largest
|sigma / t - 1| after any step, and for each transition the gradient norm at its output over that at its input
(Zaeemzadeh et al., Fig. 3), as median and range over the steps; `--released` adds the authors' program.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import chain, count, islice
from statistics import median

import torch
from torch import Tensor, nn
from torch.nn import functional

from leadline import models
from leadline.data import Batches, load
from leadline.projections import Procrustes
from leadline.projections.zaeemzadeh2018 import Algorithm1
from leadline.taps.places import Place
from leadline.taps.reductions import FROBENIUS
from leadline.taps.tape import Tap, Tape

MAPS = {"stem.conv": 32, "blocks.transition2": 16, "blocks.transition3": 8}
PROJECTED, PLAIN = "procresnet-22", "preresnet-20"
OF_PLAIN = ("blocks.stage1_block1", "blocks.stage2_block1", "blocks.stage3_block1")

Kernels = dict[str, nn.Module]


@dataclass
class History:
    """What one training run left: losses, deviations by kernel, gradient-norm ratios by transition."""

    name: str
    seconds: float = 0.0
    losses: list[float] = field(default_factory=list)
    deviations: dict[str, list[float]] = field(default_factory=dict)
    ratios: dict[str, list[float]] = field(default_factory=dict)

    def note(self, into: dict[str, list[float]], values: dict[str, float]) -> None:
        for key, value in values.items():
            into.setdefault(key, []).append(value)


def batches(size: int) -> Iterator[tuple[Tensor, Tensor]]:
    data = load("cifar10", download=False)
    cut = Batches(data.train, batch_size=size, augment="crop-flip", normalise=(data.mean, data.std))
    return chain.from_iterable(map(cut.epoch, count()))


def ours(kernels: Kernels) -> Procrustes:
    return Procrustes(kernels)


def paper(kernels: Kernels) -> Procrustes:
    return Algorithm1(kernels, method="printed", maps=MAPS, every=2)


def release(kernels: Kernels) -> Procrustes:
    return Algorithm1(kernels, method="released", maps=MAPS, every=2, schedule="random")


def train(
    name: str, places: tuple[str, ...], projection: Callable[[Kernels], Procrustes] | None, *, steps: int, batch: int
) -> History:
    torch.manual_seed(0)
    model = models.create(PROJECTED if projection else PLAIN)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    procrustes = projection({place: model.get_submodule(place) for place in MAPS}) if projection else None
    if procrustes:
        procrustes.attach(optimizer)
    taps = {
        place: [Tap(Place(place, *side), FROBENIUS, "gradient") for side in (("in", (0,)), ("out",))]
        for place in places
    }
    history, start = History(name), time.process_time()
    with Tape(model, list(chain.from_iterable(taps.values()))) as tape:
        for x, y in islice(batches(batch), steps):
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(x.requires_grad_()), y)
            loss.backward()
            heard = tape.read()
            optimizer.step()
            history.losses.append(loss.item())
            history.note(
                history.ratios, {place: float(heard[after] / heard[before]) for place, (before, after) in taps.items()}
            )
            if procrustes:
                history.note(history.deviations, procrustes.deviations())
    history.seconds = time.process_time() - start
    return history


def table(histories: list[History]) -> str:
    lines = ["largest |sigma / t - 1| after any step (median over the steps)"]
    for one in histories:
        if one.deviations:
            each = (f"{name} {max(found):.2e} ({median(found):.1e})" for name, found in one.deviations.items())
            lines.append(f"  {one.name:28s} {'   '.join(each)}")
    lines.append("gradient norm at the output over that at the input: median (smallest .. largest)")
    for one in histories:
        each = (
            f"{name} {median(found):.3f} ({min(found):.2f} .. {max(found):.2f})" for name, found in one.ratios.items()
        )
        lines.append(f"  {one.name:28s} {'   '.join(each)}")
    lines.append("loss, mean over the last tenth; CPU seconds")
    for one in histories:
        last = one.losses[-max(1, len(one.losses) // 10) :]
        lines.append(f"  {one.name:28s} {sum(last) / len(last):.3f}   {one.seconds:.0f} s")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--released", action="store_true", help="also the projection as the authors' program makes it")
    parser.add_argument("--json", action="store_true", help="every value of every step instead of the table")
    options = parser.parse_args()
    torch.set_num_threads(1)
    kernels = tuple(MAPS)
    arms = [("ours, every step", kernels, ours), ("Algorithm 1, every 2 steps", kernels, paper)]
    arms += [("as released, p = 1/2", kernels, release)] if options.released else []
    histories = []
    for name, places, projection in [*arms, (f"{PLAIN}, no projection", OF_PLAIN, None)]:
        sys.stderr.write(f"{name} ...\n")
        histories.append(train(name, places, projection, steps=options.steps, batch=options.batch))
    found = json.dumps([asdict(one) for one in histories], indent=1) if options.json else table(histories)
    sys.stdout.write(found + "\n")


if __name__ == "__main__":
    main()
