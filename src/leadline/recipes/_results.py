"""What a recipe comes to: table, verdicts, comparison with the published numbers, figure; and how they are written."""

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leadline.analysis.claims import Claim, decide
from leadline.analysis.stats import spread
from leadline.analysis.verdict import Verdict, undecided
from leadline.core.config import Scale
from leadline.core.study import Unit
from leadline.core.table import Table
from leadline.figures.style import save
from leadline.recipes import Made, Recipe, load
from leadline.store.layout import RunFolder, write_json, write_whole

FORMATS = ("svg", "png", "pdf")


@dataclass(frozen=True, kw_only=True)
class Result:
    """A recipe at a scale, judged on the runs that have finished; `missing` names those that have not."""

    name: str
    scale: Scale
    table: Table
    verdicts: tuple[tuple[Claim, Verdict], ...]
    comparison: Table
    runs: tuple[str, ...]
    missing: tuple[str, ...]

    def ledger(self) -> list[dict[str, Any]]:
        """One row a claim, as plain data."""
        return [
            {
                "recipe": self.name,
                "scale": self.scale,
                "where": claim.where,
                "claim": claim.text,
                "published": claim.published,
                "ours": plain(verdict.measured),
                "seeds": verdict.seeds,
                "verdict": verdict.outcome,
                "note": verdict.note,
            }
            for claim, verdict in self.verdicts
        ]


def judge(name: str, scale: Scale, units: Sequence[Unit], root: Path) -> Result:
    """Reads what has finished of a recipe's units below `root` and judges it."""
    recipe = load(name)
    distinct = {unit.identity: unit for unit in units}
    finished = [i for i in distinct if RunFolder(root / i).done]
    missing = tuple(i for i in distinct if i not in finished)
    table = recipe.table([Made(distinct[i], root / i) for i in finished]) if finished else Table()
    return Result(
        name=name,
        scale=scale,
        table=table,
        verdicts=tuple((claim, _decided(claim, table, scale, missing)) for claim in recipe.CLAIMS),
        comparison=compare(recipe.PUBLISHED, table),
        runs=tuple(finished),
        missing=missing,
    )


def _decided(claim: Claim, table: Table, scale: Scale, missing: Sequence[str]) -> Verdict:
    """The verdict; a test that cannot do with what is left of its runs says nothing."""
    try:
        return decide(claim, table, scale)
    except Exception as error:
        if not missing:
            raise
        return undecided(f"{len(missing)} runs are missing ({type(error).__name__}: {error})")


def compare(published: Table, ours: Table) -> Table:
    """The published numbers, each beside the mean of ours over the rows that agree with it in all key columns."""
    keys = [name for name in published if name not in ("quantity", "value", "source")]
    return Table.from_rows(
        [_beside(row, keys, ours) for row in published.rows()],
        [*keys, "quantity", "published", "ours", "std", "seeds", "source"],
    )


def _beside(row: dict[str, Any], keys: Sequence[str], ours: Table) -> dict[str, Any]:
    wanted = {name: row[name] for name in keys if row[name] is not None}
    found = spread(ours.where(**wanted)[row["quantity"]] if ours.height else [])
    return {name: row[name] for name in (*keys, "quantity")} | {
        "published": row["value"],
        "ours": found.mean,
        "std": found.std,
        "seeds": found.count,
        "source": row.get("source", ""),
    }


def write(result: Result, folder: Path) -> None:
    """Table, verdicts, comparison and figure into a folder of the recipe's own; every file whole or not at all.

    What is there already, made by the same code of the same numbers, is left alone. `verdicts.json` is written last.
    """
    texts = {"table.csv": result.table.to_csv(), "published.csv": result.comparison.to_csv()}
    said = summary(result)
    said["made_of"] = _digest(*texts.values(), json.dumps(said), *_sources(result.name))
    if _stands(folder, said):
        return
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        write_whole(folder / name, text.encode())
    write_json(folder / "table.json", records(result.table))
    _draw(result, folder)
    write_json(folder / "verdicts.json", said)


def _stands(folder: Path, said: dict[str, Any]) -> bool:
    """Whether the folder's results are whole and were made of the same."""
    names = ["table.csv", "published.csv", "table.json", *(f"figure.{kind}" for kind in FORMATS)]
    if not all((folder / name).exists() for name in ("verdicts.json", *names)):
        return False
    return bool(read_ledger(folder / "verdicts.json").get("made_of") == said["made_of"])


def _sources(name: str) -> Iterator[str]:
    """The code that makes a recipe's results of its runs."""
    import leadline.analysis
    import leadline.figures
    import leadline.recipes

    packages = (leadline.recipes, leadline.figures, leadline.analysis)
    for path in sorted(path for package in packages for path in Path(package.__path__[0]).glob("*.py")):
        if path.name.startswith("_") or path.parent.name != "recipes" or path.stem == name:
            yield path.read_text(encoding="utf-8")


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def summary(result: Result) -> dict[str, Any]:
    """The ledger and everything needed to know what it rests on."""
    return {
        "recipe": result.name,
        "scale": result.scale,
        "ledger": result.ledger(),
        "published": records(result.comparison),
        "runs": list(result.runs),
        "missing": list(result.missing),
    }


def records(table: Table) -> list[dict[str, Any]]:
    """The rows for JSON, which has no number for what is not finite."""
    return [{name: plain(value) for name, value in row.items()} for row in table.rows()]


def plain(value: Any) -> Any:
    """A finite number or anything else as it is, a number that is not finite as text.

    >>> plain(float("inf"))
    'inf'
    """
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _draw(result: Result, folder: Path) -> None:
    if not result.table.height:
        return
    recipe: Recipe = load(result.name)
    try:
        figure = recipe.figure(result.table)
    except Exception:
        if not result.missing:
            raise
        for kind in FORMATS:  # one of other runs would be taken for this one's
            (folder / f"figure.{kind}").unlink(missing_ok=True)
        return
    for kind in FORMATS:
        save(figure, folder / f"figure.{kind}")


def read_ledger(path: Path) -> dict[str, Any]:
    """A written summary again."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found
