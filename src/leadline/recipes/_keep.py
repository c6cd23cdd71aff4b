"""Keeping what reproductions came to without their runs: small tables, the figure and what it rests on, per scale."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leadline.core.config import Scale
from leadline.recipes._results import Result, read_ledger, summary
from leadline.store import reader
from leadline.store.layout import write_json, write_whole

LARGEST_TABLE = 200_000
"""Bytes of a table that is kept; a larger one is made again from the runs."""
ORDER: tuple[Scale, ...] = ("paper", "laptop", "smoke")
PACKAGES = ("torch", "numpy")
STATEMENTS = "verify.json"


def keep(result: Result, made: Path, runs: Path, into: Path) -> Path | None:
    """Copies a result into `into/RECIPE/SCALE.*`; nothing is kept of a recipe that has no figure.

    `made` is the folder of the result's files, `runs` that of its runs, from which versions and dates come.
    """
    if not (made / "figure.svg").exists():
        return None
    folder = into / result.name
    folder.mkdir(parents=True, exist_ok=True)
    text = result.table.to_csv().encode()
    if len(text) <= LARGEST_TABLE:
        write_whole(folder / f"{result.scale}.csv", text)
    write_whole(folder / f"{result.scale}.svg", compact((made / "figure.svg").read_text(encoding="utf-8")).encode())
    said = summary(result)
    said |= {"runs": len(result.runs), "missing": len(result.missing), "made": made_with(result.runs, runs)}
    write_json(folder / f"{result.scale}.json", said)
    return folder


def compact(svg: str) -> str:
    """The picture with the coordinates of its paths to a hundredth of a point, which nobody sees.

    >>> compact('<path d="M 1.23456 2.5"/>')
    '<path d="M 1.23 2.5"/>'
    """
    return re.sub(r' d="[^"]*"', lambda path: re.sub(r"(\.\d\d)\d+", r"\1", path[0]), svg)


def keep_statements(rows: Sequence[Mapping[str, Any]], into: Path) -> Path:
    """Writes what `leadline verify` found into `into`, the results of all statements at once."""
    into.mkdir(parents=True, exist_ok=True)
    write_json(into / STATEMENTS, list(rows))
    return into / STATEMENTS


def made_with(identities: Sequence[str], root: Path) -> dict[str, Any]:
    """Versions, and the days of the first and the last run."""
    found = [reader.read(root / identity) for identity in identities]
    environments = [run.record.get("environment", {}) for run in found]
    packages = [{"leadline": each.get("leadline"), **each.get("packages", {})} for each in environments]
    versions = {name: _distinct(each.get(name) for each in packages) for name in ("leadline", *PACKAGES)}
    days = sorted(each["started"][:10] for each in environments if "started" in each)
    return {"versions": versions, "days": [days[0], days[-1]] if days else []}


def _distinct(values: Iterator[Any]) -> list[str]:
    return sorted({str(value) for value in values if value is not None})


@dataclass(frozen=True)
class Kept:
    """What is kept of a recipe at its largest scale."""

    name: str
    scale: Scale
    figure: Path
    content: dict[str, Any]


def kept(name: str, folder: Path) -> Kept | None:
    """The result at the largest scale that is kept of a recipe; None if there is none."""
    for scale in ORDER:
        path = folder / name / f"{scale}.json"
        if path.exists():
            return Kept(name, scale, path.with_suffix(".svg"), read_ledger(path))
    return None
