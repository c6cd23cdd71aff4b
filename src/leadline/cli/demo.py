"""Train three 50-layer networks on the embedded digits, two of them sick, and say what is wrong with each."""

import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Console
from rich.table import Table
from tyro.conf import arg

from leadline.cli._page import write_page
from leadline.cli._progress import Bar
from leadline.cli._stop import stop_signal
from leadline.cli._verdicts import STYLES
from leadline.cli._words import parse, print_json
from leadline.core.config import RunConfig

if TYPE_CHECKING:
    from leadline.execute.run_one import Result

NETS = (
    ("plain, no batch norm", "plainnet-50", "none"),
    ("plain, batch norm", "plainnet-50", "batch"),
    ("residual, batch norm", "resnet-50", "batch"),
)
PROBES = ("gradient_norm_ratio@every:10", "activation_range@every:50", "collinearity@every:50")


@dataclass(frozen=True)
class Demo:
    """Train PlainNet-50 without and with batch norm and ResNet-50 on 8x8 digits, and say what is wrong with each."""

    steps: int = 150
    """how long each is trained"""
    out: Annotated[Path | None, arg(aliases=("-o",))] = None
    """keep the run folders, a picture of their learning curves and a page of them here; nothing is kept without it"""
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
            "probes": PROBES,
        }
    )


def run(words: Sequence[str]) -> int:
    options = parse(Demo, words, verb="demo")
    configs = [config(model, norm, steps=options.steps) for _, model, norm in NETS]
    from leadline.execute.run_one import Settings, run_one

    with ExitStack() as stack:
        out = options.out or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="leadline-demo-")))
        bar, stopped = stack.enter_context(Bar()), stack.enter_context(stop_signal())
        results = [run_one(each, out, settings=Settings(stop=stopped), progress=bar) for each in configs]
        rows = [_judged(what, model, result) for (what, model, _), result in zip(NETS, results, strict=True)]
    if options.out is not None:
        _draw(options.out, results)
        write_page(options.out, [result.folder.path for result in results])
    if options.json:
        print_json(rows)
    else:
        show(rows, steps=options.steps)
    return 0


def _judged(what: str, model: str, result: "Result") -> dict[str, Any]:
    """What a run came to, and what is said of it; the diagnosis is kept beside the run."""
    from leadline.execute.check import check_run
    from leadline.execute.keep import keep_of_run
    from leadline.store.reader import read

    done = read(result.folder.path)
    found, losses = check_run(done), done.readings.where(name="train/loss")["value"]
    keep_of_run(result.folder.path, done, found)
    return {
        "network": model,
        "what": what,
        "loss_first": float(losses[0]),
        "loss_last": float(losses[-10:].mean()),
        "test_accuracy": result.outcome["last"]["accuracy"],
        "verdict": found.verdict,
        "root": found.root.id if found.root else None,
        "cause": found.root.title if found.root else "",
    }


def _draw(out: Path, results: "Sequence[Result]") -> None:
    from leadline.figures import curves
    from leadline.store.reader import read

    named = {f"{model}: {what}": result for (what, model, _), result in zip(NETS, results, strict=True)}
    figure = curves.draw({name: read(result.folder.path).readings for name, result in named.items()})
    figure.savefig(out / "curves.svg")


def show(rows: Sequence[dict[str, Any]], *, steps: int) -> None:
    """One line a network."""
    table = Table(title=f"50 layers, {steps} steps on 1,437 handwritten digits", title_justify="left", box=None)
    for name in ("network", "", "first loss", "last loss", "test accuracy", "verdict", ""):
        table.add_column(name, justify="right" if "loss" in name or "accuracy" in name else "left", no_wrap=bool(name))
    for row in rows:
        numbers = (f"{row['loss_first']:.2f}", f"{row['loss_last']:.2f}", f"{100 * row['test_accuracy']:.1f} %")
        verdict = f"[{STYLES[row['verdict']]}]{row['verdict']}[/]"
        cause = f"{row['root']} {row['cause']}" if row["root"] else ""
        table.add_row(row["network"], row["what"], *numbers, verdict, cause)
    Console(highlight=False, width=None if sys.stdout.isatty() else 160).print(table)
