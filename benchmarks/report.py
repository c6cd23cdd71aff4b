"""The report of a 333-block network with 100 recorded steps and every standard reading at each: seconds and bytes.

Anatomy and places are those of ProcResNet-1003; the numbers are drawn at random with the drift and the noise that
weights and gradients have, and go through the store's own writer. Prints CPU seconds for reading and writing, and the
size of the page; the test beside it (tests/report/test_speed.py) opens such a page in Chromium.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from leadline import models
from leadline.report import write
from leadline.store.writer import RunWriter
from leadline.taps.inputs import understand
from leadline.train.presets import choose
from leadline.train.sounder import Sounder, look

Numbers = NDArray[np.float64]

SPREAD = ("min", "max", *(f"p{k:02}" for k in (1, 5, 25, 50, 75, 95, 99)))
BINS = 16
HIDDEN = [f"{kind}/{way}" for way in ("batch", "channel") for kind in ("kappa", "kappa_kept", "rank")] + ["dead"]
WEIGHTS = ("kappa", "kappa/mode0", "kappa/mode1", "kappa/mode2", "kappa/mode3", "kappa_kept", "lost")
ALONG: dict[str, tuple[str, tuple[str, ...], float]] = {
    "gradient_norm_ratio": ("block", ("ratio", "norm", "product"), 0.2),
    "norm_bound": ("block", ("delta", "deviation", "ratio"), 0.1),
    "weight_norm": ("layer", ("norm",), 0.002),
    "update_ratio": ("layer", ("ratio",), 0.3),
    "weight_condition": ("layer", WEIGHTS, 0.01),
    "operator_condition": ("layer", ("kappa", "sigma_max", "sigma_min"), 0.01),
    "collinearity": ("boundary", ("cosine",), 0.02),
    "hidden_condition": ("boundary", tuple(HIDDEN), 0.05),
}
"""Of each probe the axis, the readings along it, and how much they change from step to step."""
RANGES = {"gradient_range": ("layer", 0.2), "weight_range": ("layer", 0.003), "activation_range": ("boundary", 0.03)}


def record(name: str = "procresnet-1003") -> dict[str, Any]:
    """What the description of such a run says."""
    model = models.create(name, num_classes=10)
    inputs = understand(model, (torch.randn(2, 3, 32, 32), torch.randint(10, (2,))))
    sounder = Sounder(model=model, anatomy=look(model, inputs), probes=choose("standard"), inputs=inputs)
    return {"config": {"model": {"name": name, "args": {}}, "seed": 0}, "steps": 100, **sounder.describe()}


def fill(folder: Path, described: dict[str, Any], *, steps: int = 100, seed: int = 0) -> None:
    """A finished run of `steps` steps in which every standard probe was read at each."""
    random = np.random.default_rng(seed)
    with RunWriter(folder) as writer:
        writer.describe(described)
        courses = [(probe, name, values) for probe, name, values in along(described["places"], steps, random)]
        for step in range(steps):
            writer.append(step, "loss", "train/loss", float(2.3 * np.exp(-step / 60) + 0.1 * random.random()))
            for probe, name, values in courses:
                writer.append(step, probe, name, values[step].tolist())
        writer.finish({"outcome": "finished", "steps": steps, "last": {"loss": 0.6, "accuracy": 0.8}})


def along(places: dict[str, list[str]], steps: int, random: np.random.Generator) -> Iterator[tuple[str, str, Numbers]]:
    """Every reading that has one number a place, as (steps, places)."""
    for probe, (axis, names, change) in ALONG.items():
        for name in names:
            values = course(len(places[axis]), steps, change, random)
            yield probe, name, np.round(values * 30) if name.startswith(("rank", "lost", "dead")) else values
    for probe, (axis, change) in RANGES.items():
        scale = course(len(places[axis]), steps, change, random)
        for k, name in enumerate(SPREAD):
            yield probe, name, scale * np.linspace(-3, 3, len(SPREAD))[k] * course(scale.shape[1], steps, 0.02, random)
        shares = np.exp(-(np.linspace(-2.5, 2.5, BINS) ** 2))[:, None, None] * random.gamma(
            40, size=(BINS, *scale.shape)
        )
        for k, share in enumerate(np.round(shares / shares.sum(0) * 16384) / 16384):
            yield probe, f"histogram/{k:02}", share


def course(places: int, steps: int, change: float, random: np.random.Generator) -> Numbers:
    """Lognormal along depth; from step to step half a walk and half noise of the size `change`."""
    start = random.normal(0, 0.3, places)
    walk = np.cumsum(random.normal(0, change / 2, (steps, places)), axis=0)
    drawn: Numbers = np.exp(start + walk + random.normal(0, change / 2, (steps, places)))
    return drawn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="procresnet-1003")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--keep", type=Path, help="leave run folder and page here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        root = options.keep or Path(temporary)
        folder, page = root / options.model, root / "report.html"
        if not (folder / "done.json").exists():
            fill(folder, record(options.model), steps=options.steps)
        began = time.process_time()
        write(page, [folder])
        seconds = time.process_time() - began
        readings = (folder / "readings.jsonl").stat().st_size
        print(f"readings {readings / 1e6:.1f} MB; report {page.stat().st_size / 1e6:.2f} MB in {seconds:.2f} s of CPU")


if __name__ == "__main__":
    main()
