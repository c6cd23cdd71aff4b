"""Reproduce tables and figures of the papers: run what is missing, judge every claim, draw ours beside theirs."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from tyro.conf import Positional

from leadline.cli._stop import stop_signal
from leadline.cli._words import parse, print_json
from leadline.core.config import Scale
from leadline.core.errors import UsageError
from leadline.core.study import Unit
from leadline.core.table import Table as Rows
from leadline.recipes import select
from leadline.recipes._keep import keep
from leadline.recipes._reproduce import Plan, concluded
from leadline.recipes._results import Result

if TYPE_CHECKING:
    from leadline.execute.unit import Outcome

COLOURS = {"holds": "green", "fails": "red", "undecided": "yellow"}


@dataclass(frozen=True, kw_only=True)
class Reproduce:
    """Re-make tables and figures of the papers and judge their claims; exit 1 if a claim fails or a run does.

    Runs go to OUT/runs and are shared between recipes; one that is there is never done again, one that was
    interrupted goes on. Results go to OUT/SCALE/RECIPE: table, verdicts, published numbers beside ours, figure.
    """

    names: Positional[tuple[str, ...]]
    """recipes from `leadline list recipes`, paper keys such as li2016, globs, or all"""
    scale: Scale = "laptop"
    """smoke (seconds), laptop (minutes a recipe on one core), paper (as published; mostly for GPUs)"""
    workers: int | None = None
    """processes, each with one torch thread; as many as cores when not given, 0 for this process alone"""
    ray: str | None = None
    """runs as tasks of Ray instead: auto (the cluster this machine is part of, else a Ray of its own) or HOST:PORT"""
    gpus: float = 0.0
    """the share of a GPU that each run takes under --ray: 0.25 puts four on one"""
    out: Annotated[Path, tyro.conf.arg(aliases=("-o",))] = Path("reproduced")
    """the folder of runs and results"""
    keep: Path | None = None
    """also copies the small part of every result there (table, figure, ledger, versions), by recipe and scale"""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1, mps"""
    dry_run: bool = False
    """only say what would be run and what it costs"""
    json: bool = False
    """as JSON"""


def run(words: Sequence[str]) -> int:
    options = parse(Reproduce, words, verb="reproduce")
    if options.workers is not None and options.workers < 0:
        raise UsageError(f"--workers {options.workers}: expected at least 0")
    if options.gpus and options.ray is None:
        raise UsageError("--gpus is about tasks of Ray; it needs --ray")
    if not options.names:
        raise UsageError("no recipe is named; expected names from `leadline list recipes`, a paper's key, or all")
    plan = Plan.of(select(options.names), options.scale, options.out)
    screen = Console(stderr=True, highlight=False)
    if options.dry_run:
        print_json(plan.rows()) if options.json else show_plan(plan, Console(highlight=False, width=_width()))
        return 0
    if plan.left:
        show_plan(plan, screen)
    failed: dict[str, str] = {}
    results = list(made(plan, options, screen, failed))
    if options.keep:
        for result in results:
            keep(result, plan.folder(result.name), plan.root, options.keep)
    if options.json:
        print_json({"results": [_summary(result, plan) for result in results], "failed": failed})
    else:
        show(results, plan, failed)
    return int(bool(failed) or any(v.outcome == "fails" for result in results for _, v in result.verdicts))


def made(plan: Plan, options: Reproduce, screen: Console, failed: dict[str, str]) -> Iterator[Result]:
    """Results as recipes get complete; nothing is executed and no torch imported where all runs are there."""
    if not plan.left:
        yield from concluded(plan, ((identity, "") for identity in plan.units), failed)
        return
    from leadline.execute.run_one import Settings

    execute = executor(options)
    with stop_signal() as stopped, Gauge(plan, screen) as gauge:

        def ended() -> Iterator[tuple[str, str]]:
            settings = Settings(device=options.device, stop=stopped)
            units = list(plan.units.values())
            for outcome in execute(units, plan.root, settings=settings, progress=gauge):
                gauge.ended(outcome.unit, outcome.error)
                yield outcome.unit.identity, outcome.error

        yield from concluded(plan, ended(), failed)


def executor(options: Reproduce) -> "Callable[..., Iterator[Outcome]]":
    """What executes the runs: processes of this machine, or Ray."""
    if options.ray is None:
        from leadline.execute.pool import execute

        return partial(execute, workers=os.cpu_count() or 1 if options.workers is None else options.workers)
    from leadline.execute import cluster

    return partial(cluster.execute, address=options.ray, workers=options.workers, gpus=options.gpus)


@dataclass
class Gauge:
    """A bar over all units, weighed by what they cost; a line a unit where nobody looks."""

    plan: Plan
    screen: Console
    shares: dict[str, float] = field(default_factory=dict)
    running: dict[str, str] = field(default_factory=dict)
    count: int = 0

    def __enter__(self) -> "Gauge":
        columns = (BarColumn(bar_width=24), TextColumn("{task.fields[status]}"), TimeElapsedColumn())
        looked_at = self.screen.is_terminal
        self.bar = Progress(*columns, console=self.screen, transient=True, disable=not looked_at)
        self.task: TaskID = self.bar.add_task("", total=sum(self.plan.seconds.values()) or 1.0, status="")
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def started(self, unit: Unit) -> None:
        self.running[unit.identity] = unit.identity
        self._show()

    def advanced(self, unit: Unit, share: float) -> None:
        self.shares[unit.identity] = share
        self._show()

    def note(self, text: str) -> None:
        self.screen.print(text, markup=False, soft_wrap=True)

    def ended(self, unit: Unit, error: str) -> None:
        if unit.identity not in self.plan.left:
            return
        self.running.pop(unit.identity, None)
        self.shares[unit.identity] = 1.0
        self.count += 1
        if error:
            self.note(f"{unit.identity} failed: {error}")
        elif not self.screen.is_terminal:
            self.note(f"{self.count} of {len(self.plan.left)}: {unit.identity}")
        self._show()

    def _show(self) -> None:
        spent = sum(self.plan.seconds.get(i, 0.0) * share for i, share in self.shares.items())
        names = ", ".join(self.running.values())
        self.bar.update(self.task, completed=spent, status=f"{self.count} of {len(self.plan.left)}  {names}")


def show_plan(plan: Plan, console: Console) -> None:
    """What will be run, recipe by recipe."""
    table = Table(box=None, pad_edge=False)
    for name in ("recipe", "runs", "done", "shared", "to do", "about, on one core"):
        table.add_column(name, justify="left" if name == "recipe" else "right", no_wrap=True)
    rows = plan.rows()
    for row in rows:
        numbers = (str(row[key] or "") for key in ("units", "done", "shared", "to_do"))
        table.add_row(row["recipe"], *numbers, spoken(row["core_seconds"]) if row["to_do"] else "")
    total = sum(row["core_seconds"] for row in rows)
    console.print(table)
    console.print(f"{len(plan.left)} of {len(plan.units)} runs to do, about {spoken(total)} on one core", markup=False)


def spoken(seconds: float) -> str:
    """A length of time with two digits.

    >>> spoken(4000)
    '1.1 h'
    """
    for size, unit in ((86400.0, "days"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 1.5 * size or (unit == "h" and seconds >= size):
            return f"{seconds / size:.2g} {unit}" if seconds / size < 100 else f"{seconds / size:.0f} {unit}"
    return f"{seconds:.2g} s"


def show(results: Sequence[Result], plan: Plan, failed: dict[str, str]) -> None:
    """The ledger, then published numbers beside ours, what failed, and where everything lies."""
    console = Console(highlight=False, width=_width())
    console.print(ledger(results))
    for result in results:
        if result.comparison.height:
            console.print(f"\n{result.name}: published and ours", markup=False)
            console.print(beside(result.comparison))
    for identity, error in failed.items():
        console.print(f"[red]failed[/red] {identity}: ", end="")
        console.print(error, markup=False, soft_wrap=True)
    counts = {o: sum(v.outcome == o for result in results for _, v in result.verdicts) for o in COLOURS}
    console.print("\n" + ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count))
    console.print(f"tables and figures are in {plan.out / plan.scale}", markup=False, soft_wrap=True)


def ledger(results: Sequence[Result]) -> Table:
    """One line a claim: what is claimed, published, ours, seeds, verdict and why."""
    table = Table(box=None, pad_edge=False)
    for name in ("recipe", "claim", "published", "ours", "seeds", "verdict", "note"):
        table.add_column(name, justify="right" if name in ("ours", "seeds") else "left")
    for result in results:
        for claim, verdict in result.verdicts:
            ours = f"{verdict.measured:.4g}" if verdict.measured == verdict.measured else ""
            colour = COLOURS[verdict.outcome]
            cells = (result.name, claim.text, claim.published)
            table.add_row(
                *map(_escaped, cells),
                ours,
                str(verdict.seeds),
                f"[{colour}]{verdict.outcome}[/]",
                _escaped(verdict.note),
            )
    return table


def beside(comparison: Rows) -> Table:
    """Every published number with ours; a dash where no run of ours agrees with its keys."""
    table = Table(box=None, pad_edge=False)
    for name in comparison:
        number = name in ("published", "ours", "std", "seeds")
        table.add_column(name, justify="right" if number else "left", no_wrap=True)
    for row in comparison.rows():
        table.add_row(*(_escaped(_cell(value)) for value in row.values()))
    return table


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}" if value == value else "-"
    return "" if value is None else str(value)


def _escaped(text: str) -> str:
    return text.replace("[", "\\[")


def _width() -> int | None:
    return None if sys.stdout.isatty() else 200


def _summary(result: Result, plan: Plan) -> dict[str, Any]:
    from leadline.recipes._results import summary

    return summary(result) | {"folder": str(plan.folder(result.name))}
