"""Pages of the documentation, one a paper: every recipe's card, our figure beside the published numbers, the ledger.

They are written from the cards of recipes and from what `leadline reproduce --keep` and `leadline verify --keep` left
in a folder: `python -m leadline.recipes._pages docs/results docs/papers`.
"""

import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from leadline.recipes import HEADS, card, papers, select
from leadline.recipes._keep import STATEMENTS, Kept, kept

PAPERS = {
    "oyedotun2021": (
        "Rethinking skip connections",
        "Oyedotun, Al Ismaeil, Aouada: Training Very Deep Neural Networks: Rethinking the Role of Skip Connections",
    ),
    "li2016": ("Demystifying ResNet", "Li, Jiao, Han, Weissman: Demystifying ResNet"),
    "zaeemzadeh2018": (
        "Norm-preservation",
        "Zaeemzadeh, Rahnavard, Shah: Norm-Preservation: Why Residual Networks Can Become Extremely Deep?",
    ),
    "chen2021": ("ResNEsts and DenseNEsts", "Chen, Lee, Garudadri, Rao: ResNEsts and DenseNEsts"),
}
COMMAND = re.compile(r"(leadline \w+(?: [\w*]+_\w+)?(?: --\w+ \w+)*)")
WORDS = {"holds": "hold", "fails": "fail", "undecided": "are undecided"}


def main(words: Sequence[str]) -> int:
    if len(words) != 2:
        sys.stderr.write("expected two folders: of the kept results, and of the pages to be written\n")
        return 2
    write(Path(words[0]), Path(words[1]))
    return 0


def write(results: Path, pages: Path) -> list[Path]:
    """A page for every paper that has recipes; a page that says the same is not touched."""
    pages.mkdir(parents=True, exist_ok=True)
    written = []
    for key in papers():
        path = pages / f"{key}.md"
        text = page(key, results, beside=pages)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
        written.append(path)
    return written


def page(key: str, results: Path, *, beside: Path) -> str:
    """The page of a paper; figures are referred to from the folder `beside`."""
    title, reference = PAPERS[key]
    found = {name: kept(name, results) for name in select([key])}
    parts = [
        f"# {title}",
        reference if reference.endswith("?") else f"{reference}.",
        *_counts(found),
        *_theorems(key, results),
    ]
    for name, result in found.items():
        parts += _recipe(name, result, beside)
    return "\n\n".join(parts) + "\n"


def _counts(found: Mapping[str, Kept | None]) -> Iterator[str]:
    """How many claims hold at the scales kept."""
    verdicts = Counter(row["verdict"] for each in found.values() if each for row in each.content["ledger"])
    there = sum(each is not None for each in found.values())
    said = ", ".join(f"{verdicts[outcome]} {word}" for outcome, word in WORDS.items())
    yield (
        f"{len(found)} tables and figures are re-made; results of {there} of them are shown here."
        + (f" Of {verdicts.total()} claims {said}." if there else "")
        + " A claim that cannot be decided at a scale says so."
    )


def _theorems(key: str, results: Path) -> Iterator[str]:
    path = results / STATEMENTS
    if not path.exists():
        return
    rows = [row for row in json.loads(path.read_text(encoding="utf-8")) if row["paper"] == key]
    if rows:
        yield "## Statements"
        yield f"Both sides of every statement, computed apart in float64: `leadline verify {key}`."
        yield table(
            ["statement", "what it says", "verdict", "worst error"],
            ([f"`{r['name']}`", r["statement"], r["verdict"], _number(r["worst_error"])] for r in rows),
        )
    if failing := [row for row in rows if row["verdict"] != "holds" and row["notes"]]:
        yield "\n".join(f"- `{row['name']}` {row['verdict']}: {_escaped(row['notes'][0])}." for row in failing)


def _recipe(name: str, result: Kept | None, beside: Path) -> Iterator[str]:
    parts = card(name)
    yield f"({name})=\n## {parts['title'].rstrip('.')}"
    yield "\n".join(f"**{head}.** {_with_commands(parts[head])}\n" for head in HEADS if head in parts).rstrip()
    if result is None:
        yield "No result is kept of it yet."
        return
    source = os.path.relpath(result.figure, beside).replace(os.sep, "/")
    yield f"::::{{container}} beside\n\n![{name} at {result.scale} scale]({source})\n\n{_published(result)}\n\n::::"
    yield _ledger(result)
    yield _made(result)


def _with_commands(text: str) -> str:
    """The text with our commands set as code.

    >>> _with_commands("leadline reproduce li2016_fig4 --scale paper (a_b)")
    '`leadline reproduce li2016_fig4 --scale paper` (a\\\\_b)'
    """
    return "".join(f"`{part}`" if COMMAND.fullmatch(part) else _escaped(part) for part in COMMAND.split(text))


def _published(result: Kept) -> str:
    """The published numbers beside ours, as a table."""
    rows = result.content["published"]
    if not rows:
        return "The paper prints no numbers for this."
    keys = [name for name in rows[0] if name not in ("quantity", "published", "ours", "std", "seeds", "source")]
    shown = ([*(row[k] for k in keys), row["quantity"], _number(row["published"]), _ours(row)] for row in rows)
    return table([*keys, "quantity", "published", "ours"], shown)


def _ours(row: Mapping[str, Any]) -> str:
    if not row["seeds"]:
        return "-"
    spread = "" if row["std"] == "nan" else f" ± {_number(row['std'])}"
    return f"{_number(row['ours'])}{spread} ({row['seeds']})"


def _ledger(result: Kept) -> str:
    rows = (
        [row["claim"], row["published"], _number(row["ours"]), row["seeds"], f"**{row['verdict']}**", row["note"]]
        for row in result.content["ledger"]
    )
    return table(["claim", "published", "ours", "seeds", "verdict", "why"], rows)


def _made(result: Kept) -> str:
    """Scale, runs, versions and days."""
    made = result.content["made"]
    versions = ", ".join(f"{name} {' and '.join(found)}" for name, found in made["versions"].items() if found)
    days = " to ".join(dict.fromkeys(made["days"]))
    lost = f"; {result.content['missing']} runs are missing" if result.content["missing"] else ""
    return f"*{result.scale} scale, {result.content['runs']} runs, {days}, {versions}{lost}.*"


def table(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table in Markdown.

    >>> print(table(["a", "b"], [[1, "x|y"]]))
    | a | b |
    |---|---|
    | 1 | x\\|y |
    """
    lines = [heads, ["---"] * len(heads), *([_escaped(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" if i != 1 else f"|{'|'.join(cells)}|" for i, cells in enumerate(lines))


def _escaped(text: Any) -> str:
    """Bars, stars and dollars are signs here, not markup, but for what we marked ourselves."""
    said = "" if text is None else str(text)
    if said.startswith(("`", "**")):
        return said
    for sign in ("\\", "|", "*", "_", "$", "<"):
        said = said.replace(sign, f"\\{sign}")
    return said


def _number(value: Any) -> str:
    """Four digits; what is not finite was written as text.

    >>> _number(0.123456), _number("inf")
    ('0.1235', 'inf')
    """
    return f"{value:.4g}" if isinstance(value, (int, float)) else str(value)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
