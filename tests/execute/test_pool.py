"""The pool: a crash is survived and tried again, what fails twice is reported, and nothing else is touched by it."""

from pathlib import Path

import pytest

from leadline.core.study import Study
from leadline.execute.pool import execute
from leadline.execute.run_one import Settings, Stopped
from leadline.execute.unit import TRACEBACK
from leadline.store.reader import read

PLACE = "execute.failing"


def study(name: str, **args: object) -> Study:
    return Study.of(f"{PLACE}:{name}", **args)


def test_a_killed_process_is_replaced_and_its_unit_tried_once_more(tmp_path: Path) -> None:
    doomed = study("killed_once", marker=str(tmp_path / "killed"))
    hopeless = study("aborts")
    others = [study("fine", seed=seed) for seed in range(3)]
    told: list[str] = []

    class Listener:
        def started(self, unit: object) -> None: ...

        def advanced(self, unit: object, share: float) -> None: ...

        def note(self, text: str) -> None:
            told.append(text)

    units = [hopeless, doomed, *others]
    ended = {o.unit: o for o in execute(units, tmp_path / "runs", workers=1, progress=Listener())}
    assert set(ended) == set(units)
    assert [ended[unit].error for unit in others] == [""] * 3
    assert ended[doomed].finished and ended[doomed].attempts == 2
    assert read(ended[doomed].folder).readings["value"].tolist() == [1.0, 2.0]
    assert not ended[hopeless].finished and ended[hopeless].attempts == 2
    assert "SIGABRT" in ended[hopeless].error
    assert sum("SIGKILL" in text and "tried once more" in text for text in told) == 1
    assert read(ended[hopeless].folder).state == "dead"


def test_what_raises_is_tried_once_more_and_what_cannot_be_meant_is_not(tmp_path: Path) -> None:
    units = [
        study("raises_once", marker=str(tmp_path / "raised")),
        study("raises"),
        study("cannot_be_meant"),
        study("fine", seed=1),
    ]
    once, twice, never, fine = (
        {o.unit: o for o in execute(units, tmp_path, workers=0)}[unit] for unit in units
    )  # fmt: skip
    assert once.finished and once.attempts == 2 and not (once.folder / TRACEBACK).exists()
    assert twice.error == "ZeroDivisionError: nothing to divide by" and twice.attempts == 2
    assert "in raises" in (twice.folder / TRACEBACK).read_text()
    assert never.error == "depth -1: expected at least 1" and never.attempts == 1
    assert fine.finished and fine.attempts == 1


def test_units_are_done_once_and_stopping_leaves_them_to_go_on(tmp_path: Path) -> None:
    units = [study("fine", seed=seed) for seed in (0, 0, 1, 2)]
    with pytest.raises(Stopped):
        list(execute(units, tmp_path, workers=0, settings=Settings(stop=lambda: True)))
    first = [outcome.unit for outcome in execute(units, tmp_path, workers=0)]
    assert first == [units[0], units[2], units[3]]
    stamps = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert [outcome.attempts for outcome in execute(units, tmp_path, workers=0)] == [1, 1, 1]
    assert stamps == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
