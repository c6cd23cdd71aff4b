"""Recipes: one file per table or figure of a paper. This is what such a file holds.

A recipe is a plain module. Its docstring is its card: a first line that says what is made, then the paragraphs
`Reference:`, `Run:`, `Expect:` and `Differs:`. `runs` names the units (trainings and studies), which may be shared
with other recipes; `table` makes one tidy table of the finished ones, a row for each run or each point of a run, with
the seed as a column; `figure` draws it. Nothing here imports torch: units are plain data until they are executed.
"""

import fnmatch
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from leadline.analysis.claims import Claim
from leadline.core import plugins
from leadline.core.config import RunConfig, Scale
from leadline.core.errors import unknown
from leadline.core.study import Study, Unit
from leadline.core.table import Table
from leadline.store import reader

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PACKAGE = "leadline.recipes"
HEADS = ("Reference", "Run", "Expect", "Differs")


@dataclass(frozen=True)
class Made:
    """A unit and the finished run folder it came to."""

    unit: Unit
    folder: Path

    @cached_property
    def run(self) -> reader.Run:
        return reader.read(self.folder)

    @property
    def args(self) -> dict[str, Any]:
        """The arguments of a study."""
        return cast(Study, self.unit).args

    @property
    def config(self) -> RunConfig:
        """The configuration of a training."""
        return cast(RunConfig, self.unit)

    @property
    def seed(self) -> int:
        return self.unit.seed

    @property
    def outcome(self) -> dict[str, Any]:
        """What done.json says."""
        return self.run.outcome or {}

    @property
    def diverged(self) -> bool:
        return self.outcome.get("outcome") == "diverged"

    def readings(self, name: str) -> Table:
        """The readings of a name such as `train/loss`: step, block, value and note among the columns."""
        return self.run.readings.where(name=name)

    def curve(self, name: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Steps and values of a reading that is one number."""
        found = self.readings(name)
        return found["step"], found["value"]

    def profile(self, name: str, *, step: int | None = None) -> NDArray[np.float64]:
        """The numbers of a reading along its axis, at a step or the last time it was taken; empty if never."""
        found = self.readings(name)
        if not found.height:
            return np.empty(0)
        values: NDArray[np.float64] = found.where(step=int(found["step"][-1]) if step is None else step)["value"]
        return values

    def last(self, name: str) -> float:
        """The last number of a reading; nan if there is none."""
        values = self.readings(name)["value"]
        return float(values[-1]) if len(values) else float("nan")


class Recipe(Protocol):
    """What the module of a recipe holds."""

    CLAIMS: tuple[Claim, ...]
    # key columns as in the recipe's table, `quantity` naming a column of it, `value` and `source`
    PUBLISHED: Table

    def runs(self, scale: Scale) -> Iterable[Unit]: ...

    def table(self, made: Sequence[Made]) -> Table: ...

    def figure(self, table: Table) -> "Figure": ...


def load(name: str) -> Recipe:
    """The recipe of that name."""
    return cast(Recipe, plugins.module(PACKAGE, name, kind="recipe"))


def papers() -> list[str]:
    """The citation keys of the papers that have recipes."""
    return sorted({name.partition("_")[0] for name in plugins.names(PACKAGE)})


def select(words: Sequence[str]) -> list[str]:
    """The recipes meant by names, paper keys, globs or `all`, in the listing's order."""
    files = plugins.names(PACKAGE)
    chosen: set[str] = set()
    for word in words:
        pattern = "*" if word == "all" else f"{word}_*" if word in papers() else word
        found = fnmatch.filter(files, pattern)
        if not found:
            raise unknown("recipe", word, (*files, *papers(), "all"), listing="leadline list recipes")
        chosen.update(found)
    return sorted(chosen, key=natural)


def natural(name: str) -> list[str | int]:
    """A key that sorts fig10 behind fig9.

    >>> sorted(["a_fig10", "a_fig9"], key=natural)
    ['a_fig9', 'a_fig10']
    """
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def card(name: str) -> Mapping[str, str]:
    """The card's parts by head, `title` being its first line; each a text without line breaks."""
    title, _, rest = plugins.card(PACKAGE, name).partition("\n")
    parts = {"title": title}
    head = ""
    for line in rest.splitlines():
        if found := re.match(rf"({'|'.join(HEADS)}): *(.*)", line):
            head, line = found[1], found[2]
        if head and line.strip():
            parts[head] = f"{parts.get(head, '')} {line.strip()}".strip()
    return parts
