"""Watched: one run of the list, and what is known of it so far."""

import math
import time
from typing import Any

import numpy as np

from leadline.core.errors import UnreadableError
from leadline.core.plain import plain
from leadline.diagnosis.finding import Diagnosis
from leadline.diagnosis.judge import judge
from leadline.diagnosis.thresholds import Thresholds
from leadline.live.folder import Found
from leadline.live.gist import Gist
from leadline.live.names import key, text
from leadline.live.tail import End, end
from leadline.store.layout import read_json
from leadline.store.reader import Follower

LONGEST_LINE = 1 << 24
PIECE = 1 << 20
LONGEST_TEXT = 240
MOST_STEPS = 1 << 53

Row = dict[str, Any]


class Watched:
    """Reads again only what was written or replaced since the folder was looked at last."""

    def __init__(self, found: Found) -> None:
        self.found = Found(found.name, found.folder, {})
        self.row: Row = {}
        self._begin("")
        self.look(found)

    def _begin(self, trouble: str) -> None:
        """Nothing is known of this run."""
        self.trouble, self.state = trouble, "unreadable"
        self.record: dict[str, Any] = {}
        self.outcome: dict[str, Any] = {}
        self.gist = Gist(Follower(self.found.folder, longest=LONGEST_LINE))
        self.verdict: Diagnosis | None = None
        self.fresh, self.judged = False, 0.0
        self._end, self._unjudged = End(), ""

    # -- looking -----------------------------------------------------------------------------------------------------

    def look(self, found: Found) -> bool:
        """Takes in how the folder stands now; has the row changed?"""
        former, self.found = self.found, found
        news = {name for name in {*former.files, *found.files} if former.stamp(name) != found.stamp(name)}
        if found.trouble or former.trouble or "run.json" in news:
            self._begin(found.trouble)
            news = set(found.files)
        if not self.trouble:
            self._read(news)
        return self._renew()

    def _read(self, news: set[str]) -> None:
        folder = self.found.folder
        try:
            if "run.json" in news:
                self.record = read_json(folder.run_json, what="the description of a run")
            if "done.json" in news:
                there = "done.json" in self.found.files
                self.outcome = read_json(folder.done_json, what="the outcome of a run") if there else {}
        except UnreadableError as error:
            self._begin(short(str(error).replace(f"{folder.path}/", "its ")))
            return
        if "readings.jsonl" in news:
            self._end = end(folder.readings)
        self.state = folder.state()

    # -- judging -----------------------------------------------------------------------------------------------------

    @property
    def behind(self) -> bool:
        """Is there more to read for the verdict?"""
        return not self.trouble and self.gist.follower.position != self.found.size

    @property
    def ready(self) -> bool:
        """Was there something new, and has all of it been read?"""
        return self.fresh and self.gist.follower.position >= self.found.size

    def catch_up(self, until: float = math.inf) -> None:
        """Reads on, piece by piece, to the end or until that time."""
        while self.behind and time.monotonic() < until:
            before = self.gist.follower.position
            try:
                self.fresh = self.gist.read_on(PIECE) > 0 or self.fresh
            except UnreadableError as error:
                self._begin(short(str(error).replace(f"{self.found.folder.path}/", "its ")))
            if self.gist.follower.position == before:
                break

    def judge(self, limits: Thresholds) -> bool:
        """Judges what was read so far; has the row changed?"""
        self.fresh, self.verdict, self._unjudged, self.judged = False, None, "", time.monotonic()
        try:
            with np.errstate(all="ignore"):
                self.verdict = judge(self.gist.evidence(self.record), limits=limits)
        except Exception as error:  # whatever a damaged description does to a rule
            self._unjudged = short(f"cannot be judged: {type(error).__name__}: {error}")
        return self._renew()

    # -- showing -----------------------------------------------------------------------------------------------------

    def _renew(self) -> bool:
        former, self.row = self.row, {**self._what(), **self._progress(), **self._said()}
        return former != self.row

    def _what(self) -> Row:
        environment = self.record.get("environment")
        started = environment.get("started") if isinstance(environment, dict) else None
        name = self.found.name
        return {
            "key": key(name),
            "name": text(name),
            "state": self.state,
            "model": short(_model(self.record)),
            "started": short(started) if isinstance(started, str) else "",
            "changed": round(self.found.changed, 3),
        }

    def _progress(self) -> Row:
        step = None if self._end.step is None else self._end.step + 1
        steps = _count(self.record.get("steps"))
        if self.state == "done":
            step = _count(self.outcome.get("steps")) or step
        if step is not None and steps is not None:
            step = min(step, steps)
        return {"step": step, "steps": steps, "loss": self._end.loss, "losses": self.gist.losses()}

    def _said(self) -> Row:
        verdict, outcome, notes = self.verdict, self.outcome, []
        if outcome.get("outcome") == "diverged":
            notes.append(short(f"diverged: {outcome.get('message')}"))
        if not self.trouble:
            notes += [*map(short, self.gist.follower.notes), self._unjudged]
        return {
            "verdict": verdict.verdict if verdict else "",
            "reason": short(verdict.reason) if verdict else "",
            "root": short(f"{verdict.root.id} {verdict.root.title}") if verdict and verdict.root else "",
            "notes": [note for note in [self.trouble, *notes] if note],
        }

    def json(self) -> Row:
        """The row in JSON's own words."""
        row: Row = plain(self.row)
        return row


def _model(record: dict[str, Any]) -> str:
    """The name of the model: as configured, else the class that was recorded."""
    places = (("config", "model", "name"), ("anatomy", "model"))
    for place in places:
        found: Any = record
        for name in place:
            found = found.get(name) if isinstance(found, dict) else None
        if isinstance(found, str):
            return found
    return ""


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < MOST_STEPS else None


def short(said: str) -> str:
    """One line, not too long."""
    line = " ".join(said.split())
    return line if len(line) <= LONGEST_TEXT else f"{line[: LONGEST_TEXT - 1]}…"
