"""Verify the theorems of the papers numerically: both sides of every statement, in float64, and a verdict."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from tyro.conf import Positional

from leadline import theorems
from leadline.cli._words import parse, print_json
from leadline.core.errors import UsageError
from leadline.recipes._keep import keep_statements

COLOURS = {"holds": "green", "fails": "red", "undecided": "yellow"}


@dataclass(frozen=True)
class Verify:
    """Compute both sides of every statement on random instances and edge cases; exit 1 if one fails.

    A statement that fails as printed is followed by the form that holds. The tolerance is what float64 rounding allows.
    """

    names: Positional[tuple[str, ...]] = ()
    """files from `leadline list theorems`, parts of them (file.part), paper keys or globs; all when not given"""
    seeds: int = 3
    """repetitions with other random numbers"""
    keep: Path | None = None
    """also writes the results to verify.json there, for the pages of the papers"""
    json: bool = False
    """as JSON"""


def run(words: Sequence[str]) -> int:
    options = parse(Verify, words, verb="verify")
    if options.seeds < 1:
        raise UsageError(f"--seeds {options.seeds}: expected at least 1")
    if options.keep and options.names:
        raise UsageError("--keep is for the results of all statements; leave out the names")
    chosen = theorems.select(options.names)
    results: list[theorems.Result] = []
    try:
        results.extend(judged(chosen, seeds=options.seeds))
    except KeyboardInterrupt:
        if not options.json:
            show(results)
        raise
    if options.keep:
        keep_statements([result.to_json() for result in results], options.keep)
    if options.json:
        print_json([result.to_json() for result in results])
    else:
        show(results)
    return int(any(result.verdict.outcome == "fails" for result in results))


def judged(chosen: Sequence[tuple[str, theorems.Statement]], *, seeds: int) -> Iterator[theorems.Result]:
    """One result after another; the bar is on stderr and only there for someone who looks."""
    import torch

    torch.set_num_threads(1)  # matrices of this size are slower on two
    console = Console(stderr=True)
    columns = (BarColumn(bar_width=24), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=len(chosen))
        for name, statement in chosen:
            bar.update(task, description=name)
            yield theorems.verify(name, statement, seeds=seeds)
            bar.advance(task)


def show(results: Sequence[theorems.Result]) -> None:
    """One line a statement, then what does not hold and why."""
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 200)
    console.print(table(results, width=console.width))
    for each in results:
        if each.verdict.outcome != "holds":
            console.print(f"\n[{COLOURS[each.verdict.outcome]}]{each.name}[/] {escaped(each.statement.place)}")
            for line in (each.statement.text, *each.notes):
                console.print(f"  {line}", markup=False)
    counts = {outcome: sum(each.verdict.outcome == outcome for each in results) for outcome in COLOURS}
    console.print("\n" + ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count))


def table(results: Sequence[theorems.Result], *, width: int) -> Table:
    """Names and numbers are never cut; what a statement says gets the room that is left."""
    shown = Table(box=None, pad_edge=False)
    longest = max((len(each.name) for each in results), default=0)
    shown.add_column("statement", min_width=longest, no_wrap=True)
    shown.add_column("", min_width=9, no_wrap=True)
    for name in ("worst error", "rounding", "seconds"):
        shown.add_column(name, justify="right", min_width=len(name), no_wrap=True)
    shown.add_column("what it says", no_wrap=True)
    room = max(0, width - longest - 48)
    for each in results:
        outcome, text = each.verdict.outcome, each.statement.text
        text = text if len(text) <= room else text[: room - 1] + "…" if room else ""
        numbers = (f"{each.verdict.measured:.1e}", f"{each.tolerance:.1e}", f"{each.seconds:.2f}")
        shown.add_row(each.name, f"[{COLOURS[outcome]}]{outcome}[/]", *numbers, escaped(text))
    return shown


def escaped(text: str) -> str:
    """Brackets are mathematics here, not markup."""
    return text.replace("[", "\\[")
