"""Kernels onto the norm-preserving set: beside a training step, beside the published algorithm, and how near."""

import itertools
from collections.abc import Callable, Iterator
from statistics import median

import torch
from harness import Row, Timing, interleave, ratio_row, ratios, run
from torch import Tensor, nn
from torch.nn import functional

from leadline import models
from leadline.core.errors import UnreadableError
from leadline.data import Batches, load
from leadline.linalg.conv_spectrum import symbol_spectrum
from leadline.models.blocks.preactivated_bottleneck import preactivated_bottleneck
from leadline.models.layers import Style
from leadline.projections import Procrustes, correct, deviation, isometry, project
from leadline.projections.zaeemzadeh2018 import printed, released

BATCH = 128
CALLS = 10  # of the fast side per round
MAPS = {"stem.conv": 32, "blocks.transition2": 16, "blocks.transition3": 8}
THREE_BY_THREE = ((16, 64, 32), (64, 128, 16), (128, 256, 8))  # c, d, n
STEPS = 45


def moved(kernel: Tensor, part: float = 0.01) -> Tensor:
    """The kernel a step away, by one percent of its norm."""
    step = torch.randn_like(kernel)
    return kernel + part * step * torch.linalg.vector_norm(kernel) / torch.linalg.vector_norm(step)


def procresnet(rounds: int) -> list[Row]:
    """The three kernels of ProcResNet-166 at every step."""
    model = models.create("procresnet-166").to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    x = torch.randn(BATCH, 3, 32, 32).contiguous(memory_format=torch.channels_last)
    y = torch.randint(10, (BATCH,))
    procrustes = Procrustes(model)
    off = {site.name: moved(site.kernel.detach()) for site in procrustes.sites}

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    def ours() -> None:
        for _ in range(CALLS):
            with torch.no_grad():
                for site in procrustes.sites:
                    site.kernel.copy_(off[site.name])
            procrustes.step()

    sides: dict[str, Callable[[], object]] = {
        f"training step, batch {BATCH}": step,
        "ours": ours,
        "as printed, scaled": lambda: [printed(off[name], n) for name, n in MAPS.items()],
        "as released": lambda: [released(off[name], n) for name, n in MAPS.items()],
    }
    times = interleave(sides, rounds=rounds)
    fast, note = times["ours"], f"ours {1e3 * times['ours'].median / CALLS:.2f} ms a step"
    what = "3 kernels of ProcResNet-166, every step"
    train = times[f"training step, batch {BATCH}"]
    share = ratio_row(
        what, top=fast, bottom=train, bar=1e-3, at_most=True, scale=1 / CALLS, note=f"{note} of {train.median:.2f} s"
    )
    ours()
    largest = {
        site.name: float(
            (symbol_spectrum(site.kernel, site.onto.layout, (n, n)).values / site.onto.target - 1).abs().max()
        )
        for site, n in zip(procrustes.sites, MAPS.values(), strict=True)
    }
    return [
        share,
        faster(what, times["as printed, scaled"], fast, bar=500, note=note, calls=CALLS),
        faster(what, times["as released"], fast, bar=500, note=note, calls=CALLS),
        *(
            Row(
                what=f"largest |sigma / t - 1|, {name}", against="", value=value, bar=bar, at_most=True, note=f"n = {n}"
            )
            for (name, value), bar, n in zip(largest.items(), (1e-3, 1e-6, 1e-6), MAPS.values(), strict=True)
        ),
    ]


def faster(what: str, slow: Timing, fast: Timing, *, bar: float, note: str, calls: int = 1) -> Row:
    value, low, high = ratios(slow, fast, scale=calls)
    return Row(what=what, against=slow.name, value=value, low=low, high=high, bar=bar, at_most=False, note=note)


def warm_calls(rounds: int) -> list[Row]:
    """One warm call on each 3x3 kernel: one product without line search comes as near as the published projection."""
    rows, slow, fast, released_times = [], [], [], []
    for c, d, n in THREE_BY_THREE:
        onto = isometry((d, c, 3, 3), stride=(1, 1), dilation=(1, 1))
        off = moved(project(torch.randn(d, c, 3, 3), onto))

        def ours(off: Tensor = off, onto: object = onto) -> None:
            for _ in range(CALLS):
                correct(off, onto, rounds=1, steps=0)  # type: ignore[arg-type]

        sides: dict[str, Callable[[], object]] = {
            "as printed, scaled": lambda off=off, n=n: printed(off, n),  # type: ignore[misc]
            "as released": lambda off=off, n=n: released(off, n),  # type: ignore[misc]
            "ours": ours,
        }
        times = interleave(sides, rounds=rounds)
        near, paper = deviation(correct(off, onto, rounds=1, steps=0), onto), deviation(printed(off, n), onto)
        note = f"{1e3 * times['ours'].median / CALLS:.2f} ms; deviation {near:.2%}, as printed {paper:.2%}"
        name = f"one warm call, {c}->{d} 3x3, n = {n}"
        rows += [faster(name, times[side], times["ours"], bar=100, note=note, calls=CALLS) for side in list(sides)[:2]]
        slow.append(times["as printed, scaled"])
        released_times.append(times["as released"])
        fast.append(times["ours"])
    name = "one warm call on each of the three"
    rows += [faster(name, total(side), total(fast), bar=100, note="", calls=CALLS) for side in (slow, released_times)]
    return rows


def total(timings: list[Timing]) -> Timing:
    return Timing(timings[0].name, tuple(map(sum, zip(*(one.seconds for one in timings), strict=True))))


class Small(nn.Module):
    """A ProcResNet of two blocks with 3x3 transitions: 3 -> 64 on 32 x 32, 64 -> 128 on 16 x 16."""

    def __init__(self) -> None:
        super().__init__()
        style = Style()
        self.stem = nn.Conv2d(3, 64, 3, padding=1, bias=False)
        self.first = preactivated_bottleneck(64, 64, style=style)
        self.transition = nn.Conv2d(64, 128, 3, padding=1, bias=False)
        self.second = preactivated_bottleneck(128, 128, style=style)
        self.last = nn.Sequential(
            nn.BatchNorm2d(128), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = functional.avg_pool2d(self.first(self.stem(x)), 2)
        out: Tensor = self.last(self.second(self.transition(x)))
        return out


def pictures() -> tuple[str, Iterator[tuple[Tensor, Tensor]]]:
    """Batches of 64: CIFAR-10 where it is, otherwise the embedded digits enlarged."""
    try:
        data = load("cifar10", download=False)
    except UnreadableError:
        data = load("digits")
    batches = Batches(data.train, batch_size=64, normalise=(data.mean, data.std))
    epochs = itertools.chain.from_iterable(map(batches.epoch, itertools.count()))
    return data.name, ((functional.interpolate(x, (32, 32)).expand(-1, 3, -1, -1), y) for x, y in epochs)


def training() -> list[Row]:
    """The deviation of the transition over real steps, from a kernel on its set."""
    rows = []
    for momentum in ("keep", "tangent"):
        torch.manual_seed(0)
        model = Small()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
        convs = {"3->64": model.stem, "64->128": model.transition}
        procrustes = Procrustes(convs, momentum=momentum).attach(optimizer)
        name, batches = pictures()
        found: list[dict[str, float]] = []
        for _, (x, y) in itertools.islice(enumerate(batches), STEPS):
            optimizer.zero_grad()
            functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            found.append(procrustes.deviations())
        for conv in convs:
            each = [one[conv] for one in found]
            rows.append(
                Row(
                    what=f"median deviation of {conv} 3x3 over {len(each)} SGD steps at lr 0.1, momentum {momentum!r}",
                    against="",
                    value=median(each),
                    low=min(each),
                    high=max(each),
                    bar=0.01,
                    at_most=True,
                    note=f"{name}; spread is the smallest and the largest",
                )
            )
    return rows


def measure(rounds: int) -> list[Row]:
    torch.manual_seed(0)
    return [*procresnet(rounds), *warm_calls(rounds), *training()]


if __name__ == "__main__":
    run(measure, description=__doc__, rounds=5)
