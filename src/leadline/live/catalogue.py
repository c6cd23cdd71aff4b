"""Catalogue: the list of runs, kept up to date with little work and little reading at a time."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from leadline.core.errors import UnreadableError
from leadline.diagnosis.finding import Diagnosis
from leadline.diagnosis.thresholds import thresholds
from leadline.live.folder import Found, listing, look, names
from leadline.live.names import key
from leadline.live.watched import Row, Watched

SCAN = 1.0
"""Seconds between two looks at all folders; those that grow are looked at in every tick."""
READING = 0.05
"""Seconds of a tick for reading what was there before the list was opened."""
REST = 50.0
"""After a judgement none follows for so many times as long as it took; a first one has to wait a tenth of it."""


@dataclass(frozen=True)
class State:
    """The rows by key, each with the version of the list at which it changed, and the version of the membership."""

    version: int = 0
    members: int = 0
    rows: dict[str, tuple[int, Row]] = field(default_factory=dict)
    trouble: str = ""
    """Why there is no list."""

    def since(self, version: int) -> dict[str, object]:
        """What changed after `version`: rows, and the keys in order if any came or went."""
        rows = [row for changed, row in self.rows.values() if changed > version]
        keys = list(self.rows) if self.members > version else None
        return {"version": self.version, "rows": rows, "keys": keys, "trouble": self.trouble}


class Catalogue:
    """The runs below `root`, or one of them alone; `tick` in one thread, `state` from any."""

    def __init__(self, root: Path, *, only: str | None = None) -> None:
        self.root, self.only = root, only
        self.state = State()
        self._limits = thresholds()
        self._runs: dict[str, Watched] = {}
        self._scanned = -SCAN
        self._rested = self._took = 0.0

    def find(self, word: str) -> str | None:
        """The name of the folder with this key, among those that are there now."""
        there = names(self.root) if self.only is None else [self.only]
        return next((name for name in there if key(name) == word), None)

    def look(self, name: str) -> Found | None:
        """The folder of a run as it stands now."""
        return look(self.root.resolve(), name)

    def verdict(self, word: str) -> Diagnosis | None:
        """What was said of a run last."""
        run = self._runs.get(word)
        return run.verdict if run else None

    def tick(self) -> None:
        """Looks at what may have changed, reads on and judges a little; `state` is the new list."""
        now = time.monotonic()
        try:
            if now - self._scanned >= SCAN:
                self._scanned = now
                changed, members = self._scan()
            else:
                changed, members = self._glance(), False
        except UnreadableError as error:
            self._lose(str(error))
            return
        self._read_on(now + READING)
        changed |= self._judge()
        self._publish(changed, members)

    def settle(self) -> None:
        """Reads and judges everything there is, however long it takes."""
        self._scan()
        for run in self._runs.values():
            run.catch_up()
            if run.ready:
                run.judge(self._limits)
        self._publish(set(self._runs), True)

    def _lose(self, trouble: str) -> None:
        """The folder itself cannot be listed; it may come back."""
        self._runs = {}
        if self.state.trouble != trouble:
            version = self.state.version + 1
            self.state = State(version, version, {}, trouble)

    # -- a tick ------------------------------------------------------------------------------------------------------

    def _listing(self) -> Iterable[Found]:
        if self.only is None:
            return listing(self.root)
        found = self.look(self.only)
        return [found] if found else []

    def _scan(self) -> tuple[set[str], bool]:
        """All folders: which rows changed, and did any come or go?"""
        former, changed = self._runs, set()
        self._runs = {}
        for found in self._listing():
            word = key(found.name)
            run = former.get(word)
            if run is None:
                run = Watched(found)
                changed.add(word)
            elif run.look(found):
                changed.add(word)
            self._runs[word] = run
        return changed, list(former) != list(self._runs)

    def _glance(self) -> set[str]:
        """The growing ones."""
        changed, root = set(), self.root.resolve()
        for word, run in self._runs.items():
            if run.state == "growing" and (found := look(root, run.found.name)) and run.look(found):
                changed.add(word)
        return changed

    def _read_on(self, until: float) -> None:
        """Growing runs first, then those that changed last."""
        behind = [run for run in self._runs.values() if run.behind]
        for run in sorted(behind, key=lambda run: (run.state != "growing", -run.found.changed)):
            run.catch_up(until)

    def _judge(self) -> set[str]:
        """One run at most: one that never was judged, else the one whose verdict is oldest."""
        now = time.monotonic()
        ready = [(run.judged, word) for word, run in self._runs.items() if run.ready]
        if not ready:
            return set()
        judged, word = min(ready)
        if now < self._rested + (REST if judged else REST / 10) * self._took:
            return set()
        changed = self._runs[word].judge(self._limits)
        self._rested = time.monotonic()
        self._took = self._rested - now
        return {word} if changed else set()

    def _publish(self, changed: set[str], members: bool) -> None:
        if not changed and not members and not self.state.trouble and self.state.version:
            return
        version, former = self.state.version + 1, self.state
        rows = {
            word: (version, run.json()) if word in changed or word not in former.rows else former.rows[word]
            for word, run in self._runs.items()
        }
        came = members or former.trouble or not former.version
        self.state = State(version, version if came else former.members, rows)
