"""The diagnosis of a run: the one kept beside its readings, or what its readings say now; with the blocks it names."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from leadline.core.errors import UnreadableError
from leadline.core.plain import plain
from leadline.diagnosis.evidence import Evidence
from leadline.diagnosis.judge import judge, rules
from leadline.page.cards import of_rule
from leadline.page.pack import Course
from leadline.store.layout import read_json
from leadline.store.reader import Reading, to_table

DIAGNOSIS, PROOFS = "diagnosis.json", "proofs.json"
MOST_NAMES = 40


def beside(path: Path, name: str, notes: list[str]) -> dict[str, Any] | None:
    """diagnosis.json or proofs.json of a run folder; None where there is none, and a note where it is damaged."""
    if not (path / name).is_file():
        return None
    try:
        return read_json(path / name, what="what a check kept")
    except UnreadableError as error:
        notes.append(str(error))
        return None


def diagnosis(record: Mapping[str, Any], lines: Sequence[Course]) -> dict[str, Any] | None:
    """What the readings say now; None while they say nothing (no step was made, or they cannot be judged)."""
    table = to_table(list(telling(lines)))
    if not (table["probe"] == "loss").any():
        return None
    try:
        return {**plain(judge(Evidence(record, table)).to_json()), "from_readings": True}
    except (KeyError, IndexError, TypeError, ValueError):
        return None  # a record of somebody else's making need not have what the rules ask for


def telling(lines: Sequence[Course]) -> Iterator[Reading]:
    """The readings that rules look at: every scalar, and profiles when they were first and last read."""
    for course in lines:
        if course.name.startswith("histogram/"):
            continue
        few = course.places and len(course.steps) > 2
        for k in (0, len(course.steps) - 1) if few else range(len(course.steps)):
            reading = {"step": course.steps[k], "probe": course.probe, "name": course.name, "value": course.values[k]}
            yield {**reading, "notes": course.notes[k]}


def linked(found: dict[str, Any] | None, axes: Mapping[str, Any]) -> dict[str, Any] | None:
    """The diagnosis with, for every finding, the places its text names and where along the depth they lie."""
    if found is None:
        return None
    at = {name: place for axis in ("layer", "block") for name, place in zip(*_both(axes[axis]), strict=True) if name}
    return {**found, "findings": [_linked(finding, at) for finding in found.get("findings", ())]}


def _both(axis: Mapping[str, Any]) -> tuple[Sequence[str], Sequence[float]]:
    return axis["names"], axis["at"]


def _linked(finding: Mapping[str, Any], at: Mapping[str, float]) -> dict[str, Any]:
    text = "\n".join([str(finding.get("cause", "")), *map(str, finding.get("evidence", ()))])
    named = {name: at[name] for name in mentions(text, at)}
    return {**finding, "places": named, "consequences": [_linked(one, at) for one in finding.get("consequences", ())]}


def mentions(text: str, names: Mapping[str, float]) -> list[str]:
    """The names that stand in a text as words of their own; a bare number only behind `in`, `at` or `of`.

    >>> mentions("most in layer1.0, 3 of 12; at 2", {"layer1": 1, "layer1.0": 2, "3": 3, "2": 4})
    ['layer1.0', '2']
    """
    found = []
    for word in re.finditer(r"(?:\b(in|at|of) )?([^\s,;()]*[^\s,;:.()])", text):
        name = word[2].partition(":")[0]
        if name in names and (not re.fullmatch(r"[\d.]+", name) or word[1] in ("in", "at")):
            found.append(name)
    return list(dict.fromkeys(found))[:MOST_NAMES]


def rule_cards(found: Mapping[str, Any] | None) -> dict[str, Any]:
    """What explains each finding, by its id."""
    if not found:
        return {}
    files = {module.ID: name for name, module in rules().items()}
    ids = [one["id"] for finding in found["findings"] for one in (finding, *finding.get("consequences", ()))]
    return {id: of_rule(files[id]) for id in ids if id in files}
