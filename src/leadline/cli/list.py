"""List the models, datasets, probes, recipes, theorems, rules and remedies there are; needs no torch."""

import fnmatch
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from tyro.conf import Positional

from leadline.cli._words import parse, print_json
from leadline.core import plugins
from leadline.core.errors import unknown

Entry = dict[str, str | int | float | None]


@dataclass(frozen=True)
class List:
    """List what can be named: models, datasets, probes, recipes, theorems, rules, remedies."""

    what: Positional[str] = ""
    """one of them; all when not given"""
    pattern: Positional[str] = "*"
    """only names like this: '*resnest*'"""
    json: bool = False
    """as JSON"""


def models() -> list[Entry]:
    from leadline.models.catalog import entries

    return [
        {
            "name": entry.name,
            "depth": entry.depth,
            "blocks": entry.blocks,
            "parameters": entry.parameters,
            "input": "x".join(map(str, entry.input)),
            "paper": entry.paper,
            "row": entry.row,
        }
        for entry in entries()
    ]


def plugs(package: str, *, dashes: bool = False) -> Callable[[], list[Entry]]:
    def entries() -> list[Entry]:
        return [
            {"name": name.replace("_", "-") if dashes else name, "what": plugins.card(package, name).partition("\n")[0]}
            for name in plugins.names(package)
        ]

    return entries


KINDS: dict[str, Callable[[], list[Entry]]] = {
    "models": models,
    "datasets": plugs("leadline.data.datasets"),
    "probes": plugs("leadline.probes"),
    "recipes": plugs("leadline.recipes"),
    "theorems": plugs("leadline.theorems"),
    "rules": plugs("leadline.diagnosis.rules"),
    "remedies": plugs("leadline.remedies", dashes=True),
}


def run(words: Sequence[str]) -> int:
    options = parse(List, words, verb="list")
    if options.what and options.what not in KINDS:
        raise unknown("kind", options.what, KINDS)
    kinds = [options.what] if options.what else list(KINDS)
    found = {
        kind: [entry for entry in KINDS[kind]() if fnmatch.fnmatch(str(entry["name"]), options.pattern)]
        for kind in kinds
    }
    if options.json:
        print_json(found[options.what] if options.what else found)
        return 0
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 200)
    for kind, entries in found.items():
        console.print(f"[bold]{kind}[/bold] ({len(entries)})")
        show(entries, console)
    return 0


def show(entries: Sequence[Entry], console: Console) -> None:
    """The entries as a table whose columns are their keys."""
    if not entries:
        return
    table = Table(box=None, pad_edge=True)
    for name, value in entries[0].items():
        table.add_column(name, justify="right" if isinstance(value, int) else "left", no_wrap=name != "what")
    for entry in entries:
        table.add_row(*(f"{value:,}" if isinstance(value, int) else str(value or "") for value in entry.values()))
    console.print(table)
