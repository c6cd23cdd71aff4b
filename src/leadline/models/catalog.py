"""The catalogue of listed models, read without torch; `python -m leadline.models.catalog` writes it from the models."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

PATH = Path(__file__).with_name("catalog.json")


@dataclass(frozen=True)
class Entry:
    """One listed model with its default options: what `leadline list models` prints."""

    name: str
    depth: int
    blocks: int
    parameters: int
    input: tuple[int, ...]
    init: str
    paper: str
    row: str


@cache
def _all() -> tuple[Entry, ...]:
    rows = json.loads(PATH.read_text(encoding="utf-8"))
    return tuple(Entry(**{**row, "input": tuple(row["input"])}) for row in rows)


def entries(pattern: str = "*") -> tuple[Entry, ...]:
    """The listed models whose name matches a shell pattern, by family and depth."""
    return tuple(entry for entry in _all() if fnmatchcase(entry.name, pattern))


def measure(names: Iterable[str] | None = None) -> list[Entry]:
    """What the models themselves say (all listed ones or these), each built at full size on the meta device."""
    import torch

    from leadline.models.names import families, resolve

    listed = (name for family in families().values() for name in family.rows)
    found = []
    with torch.device("meta"):
        for name in listed if names is None else names:
            named = resolve(name)
            model = named.build()
            row = named.family.rows[name]
            shape, init, paper = model.input_shape, str(model.init), named.family.paper
            found.append(Entry(name, model.depth, len(model.blocks), model.parameter_count, shape, init, paper, row))
    return sorted(found, key=lambda entry: (entry.paper, entry.name.rstrip("0123456789"), entry.depth))


def write() -> None:
    """Write the catalogue, one line per model."""
    lines = ",\n".join(json.dumps(asdict(entry)) for entry in measure())
    PATH.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    write()
