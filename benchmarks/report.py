"""The report of a 333-block network with 100 recorded steps and every standard reading at each: seconds and bytes.

Anatomy and places are those of ProcResNet-1003; the numbers are drawn at random with the drift and the noise that
weights and gradients have, and go through the store's own writer. Measured are reading and writing (CPU seconds), the
size of the page, and in headless Chromium the first paint of its words and what a move of the slider takes until
every chart in sight shows the other step.
"""

import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from harness import Row, run
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


SWITCHES = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync")
MOVE = """async (value) => {
  const slider = document.querySelector(".steps input"), began = performance.now();
  slider.value = value;
  slider.dispatchEvent(new Event("input"));
  await Leadline.drawnOut();
  await new Promise((go) => requestAnimationFrame(() => setTimeout(go)));
  return performance.now() - began;
}"""


def seen(page: Path, moves: int = 20) -> tuple[float, list[float]]:
    """Seconds to the first paint of words, and those of some moves of the slider, its six charts in sight."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(SWITCHES))
        tab = browser.new_page(viewport={"width": 1280, "height": 900})
        tab.goto(f"file://{page.resolve()}")
        tab.wait_for_function("() => performance.getEntriesByName('first-contentful-paint').length")
        paint = tab.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime") / 1000
        tab.evaluate("async () => { await Leadline.drawing; await Leadline.drawnOut(); }")
        tab.evaluate("document.querySelector('[data-part=profile]').scrollIntoView()")
        tab.wait_for_timeout(4000)
        found = []
        for k in range(moves):
            found.append(tab.evaluate(MOVE, 37 * (k + 1) % 100) / 1000)
            tab.wait_for_timeout(150)
        browser.close()
    return paint, found


def written(page: Path, folder: Path) -> float:
    """CPU seconds of reading the run and writing its page."""
    began = time.process_time()
    write(page, [folder])
    return time.process_time() - began


def measure(rounds: int) -> Sequence[Row]:
    with tempfile.TemporaryDirectory() as temporary:
        folder, page = Path(temporary) / "procresnet-1003", Path(temporary) / "report.html"
        fill(folder, record())
        seconds = sorted(written(page, folder) for _ in range(rounds))
        size = page.stat().st_size / 1e6
        readings = f"from {(folder / 'readings.jsonl').stat().st_size / 1e6:.0f} MB of readings"
        spread = {"low": seconds[0], "high": seconds[-1]}
        rows = [
            Row(what="report written", against="s of CPU", value=median(seconds), bar=5, at_most=True, **spread),
            Row(what="report's size", against="MB", value=size, bar=8, at_most=True, note=readings),
        ]
        if not shutil.which("chromium"):
            sys.stderr.write("no Chromium here: the page is not opened\n")
            return rows
        looks = [seen(page) for _ in range(min(rounds, 3))]
    paints = sorted(paint for paint, _ in looks)
    moves = sorted(1000 * move for _, each in looks for move in each)
    quartiles = {"low": moves[len(moves) // 4], "high": moves[3 * len(moves) // 4]}
    opened = {"low": paints[0], "high": paints[-1]}
    return [
        *rows,
        Row(what="first paint", against="s", value=median(paints), bar=2, at_most=True, **opened),
        Row(what="slider moved", against="ms", value=median(moves), bar=100, at_most=True, **quartiles),
    ]


if __name__ == "__main__":
    run(measure, description=__doc__, rounds=3)
