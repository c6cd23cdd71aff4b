"""Train three 50-layer networks on the embedded digits, two of them sick, and compare them: about a minute."""

import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from leadline.cli._progress import Bar
from leadline.cli._stop import stop_signal
from leadline.cli._words import parse, print_json
from leadline.core.config import RunConfig

NETS = (
    ("plain, no batch norm", "plainnet-50", "none"),
    ("plain, batch norm", "plainnet-50", "batch"),
    ("residual, batch norm", "resnet-50", "batch"),
)


@dataclass(frozen=True)
class Demo:
    """Train PlainNet-50, PlainNet-50 with batch norm and ResNet-50 with batch norm on 8x8 digits, 150 steps each."""

    steps: int = 150
    """how long each is trained"""
    out: Path | None = None
    """keep the run folders and a picture of their learning curves here; nothing is kept when not given"""
    json: bool = False
    """the result as JSON"""


def config(model: str, norm: str, *, steps: int) -> RunConfig:
    """Basic blocks, widths 8-16-32; SGD at 0.05 with momentum, the usual choice for a network of this size."""
    return RunConfig.parse(
        {
            "model": {"name": model, "args": {"norm": norm, "widths": [8, 16, 32], "block": "basic"}},
            "data": {"name": "digits", "batch_size": 64},
            "optimizer": {"name": "sgd", "lr": 0.05, "momentum": 0.9, "weight_decay": 1e-4},
            "training": {"steps": steps},
        }
    )


def run(words: Sequence[str]) -> int:
    options = parse(Demo, words, verb="demo")
    configs = [config(model, norm, steps=options.steps) for _, model, norm in NETS]
    from leadline.core.table import Table as CoreTable
    from leadline.execute.run_one import Settings, run_one
    from leadline.figures import curves
    from leadline.store.reader import read

    rows: list[dict[str, Any]] = []
    readings: dict[str, CoreTable] = {}
    with ExitStack() as stack:
        out = options.out or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="leadline-demo-")))
        bar, stopped = stack.enter_context(Bar()), stack.enter_context(stop_signal())
        for (what, model, _), each in zip(NETS, configs, strict=True):
            result = run_one(each, out, settings=Settings(stop=stopped), progress=bar)
            readings[f"{model}: {what}"] = table = read(result.folder.path).readings
            losses = table.where(name="train/loss")["value"]
            rows.append(
                {
                    "network": model,
                    "what": what,
                    "loss_first": float(losses[0]),
                    "loss_last": float(losses[-10:].mean()),
                    "test_accuracy": result.outcome["last"]["accuracy"],
                }
            )
    if options.out is not None:
        curves.draw(readings).savefig(options.out / "curves.svg")
    if options.json:
        print_json(rows)
    else:
        show(rows, steps=options.steps)
    return 0


def show(rows: Sequence[dict[str, Any]], *, steps: int) -> None:
    """One line a network."""
    table = Table(title=f"50 layers, {steps} steps on 1,437 handwritten digits", title_justify="left", box=None)
    for name in ("network", "", "first loss", "last loss", "test accuracy"):
        table.add_column(name, justify="right" if "loss" in name or "accuracy" in name else "left", no_wrap=True)
    for row in rows:
        losses = (f"{row['loss_first']:.2f}", f"{row['loss_last']:.2f}")
        table.add_row(row["network"], row["what"], *losses, f"{100 * row['test_accuracy']:.1f} %")
    Console(highlight=False, width=None if sys.stdout.isatty() else 120).print(table)
