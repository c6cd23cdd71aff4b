"""Reproducing: which units the named recipes need, which are there already, and results as soon as a recipe has all."""

import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from leadline.core.config import Scale
from leadline.core.study import Unit
from leadline.recipes import load
from leadline.recipes._results import Result, judge, write
from leadline.store.layout import RunFolder, write_json

RUNS = "runs"
TRACEBACK = "traceback.txt"


@dataclass(frozen=True)
class Plan:
    """The units of every recipe at a scale, below a folder that holds runs and results."""

    scale: Scale
    out: Path
    recipes: Mapping[str, tuple[Unit, ...]]

    @classmethod
    def of(cls, names: Sequence[str], scale: Scale, out: Path) -> "Plan":
        return cls(scale, out, {name: tuple(load(name).runs(scale)) for name in names})

    @property
    def root(self) -> Path:
        return self.out / RUNS

    @cached_property
    def units(self) -> dict[str, Unit]:
        """Every unit once, in the order of the recipes."""
        return {unit.identity: unit for units in self.recipes.values() for unit in units}

    @cached_property
    def left(self) -> dict[str, Unit]:
        """The units that are not done yet."""
        return {i: unit for i, unit in self.units.items() if not RunFolder(self.root / i).done}

    @cached_property
    def seconds(self) -> dict[str, float]:
        """About how long each unit that is left takes on one core."""
        if not self.left:
            return {}
        from leadline.execute.cost import seconds

        return {i: seconds(unit) for i, unit in self.left.items()}

    def rows(self) -> list[dict[str, Any]]:
        """What will be run for each recipe; a unit that a recipe before needs as well costs nothing more."""
        seen: set[str] = set()
        found = []
        for name, units in self.recipes.items():
            own = {unit.identity for unit in units}
            new = (own & set(self.left)) - seen
            found.append(
                {
                    "recipe": name,
                    "units": len(own),
                    "done": len(own - set(self.left)),
                    "shared": len(own & set(self.left) & seen),
                    "to_do": len(new),
                    "core_seconds": round(sum(self.seconds[i] for i in new), 1),
                }
            )
            seen |= new
        return found

    def folder(self, name: str) -> Path:
        return self.out / self.scale / name

    def conclude(self, name: str, failed: Mapping[str, str]) -> Result:
        """Judges a recipe on what there is and writes it down, with why runs are missing."""
        result = judge(name, self.scale, self.recipes[name], self.root)
        folder = self.folder(name)
        write(result, folder)
        errors = {i: failed[i] for i in result.missing if i in failed}
        write_json(folder / "failed.json", errors) if errors else (folder / "failed.json").unlink(missing_ok=True)
        return result


def concluded(plan: Plan, ended: Iterator[tuple[str, str]], failed: dict[str, str]) -> Iterator[Result]:
    """Results in the order in which recipes have all that will come; `ended` says unit by unit, with its error.

    Errors are gathered in `failed`, by unit, or by recipe where that could not be judged; the others are all the same.
    """
    waiting = {name: {unit.identity for unit in units} for name, units in plan.recipes.items()}
    for name in [name for name, needed in waiting.items() if not needed]:
        del waiting[name]
        yield from _tried(plan, name, failed)
    for identity, error in ended:
        if error:
            failed[identity] = error
        for name, needed in list(waiting.items()):
            needed.discard(identity)
            if not needed:
                del waiting[name]
                yield from _tried(plan, name, failed)


def _tried(plan: Plan, name: str, failed: dict[str, str]) -> Iterator[Result]:
    """The result, or none: an error in a recipe does not take hours of other recipes' runs with it."""
    folder = plan.folder(name)
    try:
        result = plan.conclude(name, failed)
    except Exception as error:
        failed[name] = f"it could not be judged: {type(error).__name__}: {error}".splitlines()[0]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / TRACEBACK).write_text(traceback.format_exc(), encoding="utf-8")
        return
    (folder / TRACEBACK).unlink(missing_ok=True)
    yield result
