"""Executes one unit, whatever it is, and says what came of it in plain data that can cross between processes."""

import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from leadline.core.config import RunConfig
from leadline.core.errors import LeadlineError, UsageError
from leadline.core.study import Unit
from leadline.execute.run_one import Diverged, Progress, Settings, Silent, Stopped, run_one
from leadline.execute.run_study import run_study
from leadline.store.layout import RunFolder

TRACEBACK = "traceback.txt"


@dataclass(frozen=True)
class Outcome:
    """What came of a unit: a finished folder, or the error that ended the last of its `attempts`."""

    unit: Unit
    folder: Path
    error: str = ""
    attempts: int = 1

    @property
    def finished(self) -> bool:
        return not self.error


@dataclass(frozen=True)
class Trouble:
    """Why an attempt gave no result; `again` says whether another attempt may."""

    error: str
    again: bool


class Overseer(Protocol):
    """Who is told what many units are doing."""

    def started(self, unit: Unit) -> None: ...

    def advanced(self, unit: Unit, share: float) -> None: ...

    def note(self, text: str) -> None: ...


class Unseen:
    """Tells nobody."""

    def started(self, unit: Unit) -> None: ...

    def advanced(self, unit: Unit, share: float) -> None: ...

    def note(self, text: str) -> None: ...


def attempt(unit: Unit, root: Path, settings: Settings, progress: Progress | None = None) -> Trouble | None:
    """One attempt at a unit; None if its folder is finished, a diverged run's included. Stopping is raised."""
    folder = root / unit.identity
    try:
        if isinstance(unit, RunConfig):
            run_one(unit, root, settings=settings, progress=progress or Silent())
        else:
            run_study(unit, root, settings=settings, progress=progress or Silent())
    except Stopped:
        raise
    except Diverged:
        return None
    except UsageError as error:
        return Trouble(str(error), again=False)
    except LeadlineError as error:
        return Trouble(str(error), again=True)
    except Exception as error:
        _keep_traceback(folder)
        return Trouble(f"{type(error).__name__}: {error}".splitlines()[0], again=True)
    (folder / TRACEBACK).unlink(missing_ok=True)
    return None


def done(unit: Unit, root: Path) -> bool:
    """Whether the unit's folder is finished already."""
    return RunFolder(root / unit.identity).done


def _keep_traceback(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / TRACEBACK).write_text(traceback.format_exc(), encoding="utf-8")
