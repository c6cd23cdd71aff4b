"""Channel: one run as those who look at it get it: a description, then numbered news; read once for all of them."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from leadline.core.errors import LeadlineError, UnreadableError
from leadline.core.plain import plain
from leadline.live.catalogue import Catalogue
from leadline.live.folder import Found, Stamp
from leadline.live.names import text
from leadline.live.watched import LONGEST_LINE, short
from leadline.page import describe, explain, judged
from leadline.store.layout import read_json
from leadline.store.reader import Follower, Reading

PIECE = 1 << 22
"""Bytes of readings that are read, and sent, at a time."""
MOST_READINGS = 1 << 30
"""Bytes of readings that a page can begin with."""
BACKLOG = 1 << 22
"""Bytes of news, or twice those of the description if that is more, after which the run is described anew."""
DESCRIBED = ("run.json", "diagnosis.json", "proofs.json")

Mark = tuple[int, int]
"""A generation and the number of the last news that came of it."""


@dataclass(frozen=True)
class News:
    """One thing to be told: `kind` is what the browser's side calls it, `data` JSON on one line."""

    number: int
    kind: str
    data: bytes


@dataclass
class Log:
    """The description a viewer begins with, which holds all up to its own number, and the news."""

    generation: int
    begin: News
    news: list[News] = field(default_factory=list)
    size: int = 0
    """Bytes of the news after the description."""

    def since(self, mark: Mark | None) -> list[News]:
        """What is to be told to a viewer who had everything up to `mark`."""
        news = list(self.news)
        oldest = news[0].number if news else self.begin.number + 1
        if mark is not None and mark[0] == self.generation and mark[1] >= oldest - 1:
            return [one for one in news if one.number > mark[1]]
        return [self.begin, *(one for one in news if one.number > self.begin.number)]

    @property
    def last(self) -> int:
        return self.news[-1].number if self.news else self.begin.number


_generations = count(time.time_ns() // 1_000_000)
"""None of a former server comes again, so that a viewer who stayed through a restart begins anew."""


class Channel:
    """`poll` in one thread at a time, `log` from any; `word` is the key of a run that may be there or not."""

    def __init__(self, catalogue: Catalogue, word: str) -> None:
        self.catalogue, self.word = catalogue, word
        self.log: Log | None = None
        self.growing = False
        self._name: str | None = None
        self._lost: Found | None = None
        self._stamps: dict[str, Stamp | None] = {}
        self._follower: Follower | None = None
        self._restarts = 0
        self._told: dict[str, Any] = {}

    def poll(self) -> bool:
        """Looks at the folder and tells what is new; was there anything?"""
        former, last = self.log, self.log.last if self.log else 0
        found = None
        try:
            found = self._find()
            if found is None:
                self._lose("there is no run of this name in the folder")
            elif found.trouble:
                self._lose(found.trouble)
            elif found != self._lost:
                self._look(found)
        except LeadlineError as error:
            self._lose(self._own(str(error)), found)
        return self.log is not former or (former is not None and former.last != last)

    # -- finding -----------------------------------------------------------------------------------------------------

    def _find(self) -> Found | None:
        if self._name is None:
            self._name = self.catalogue.find(self.word)
        found = self.catalogue.look(self._name) if self._name is not None else None
        if found is None:
            self._name = None
        return found

    def _news(self, found: Found, names: tuple[str, ...]) -> bool:
        """Was any of these files written or replaced since they were looked at last?"""
        now = {name: found.stamp(name) for name in names}
        former = {name: self._stamps.get(name) for name in names}
        self._stamps.update(now)
        return now != former

    def _own(self, said: str) -> str:
        """A complaint without the path that leads to the folder."""
        path = f"{self.catalogue.root.resolve()}/{self._name}"
        return short(said.replace(f"{path}/", "its ").replace(path, "its folder"))

    def _look(self, found: Found) -> None:
        follower = self._follower
        if self._news(found, DESCRIBED) or follower is None:
            self._begin(found)
        else:
            self._go_on(found, follower)

    # -- telling -----------------------------------------------------------------------------------------------------

    def _lose(self, why: str, found: Found | None = None) -> None:
        """There is nothing to follow for now; not before `found` has changed, if it was there."""
        self._lost = found
        self._follower, self.growing, self._stamps = None, False, {}
        gone = _line({"id": self.word, "name": self._shown(), "why": why})
        if self.log is None or self.log.begin.data != gone:
            self.log = Log(next(_generations), News(0, "gone", gone))

    def _begin(self, found: Found) -> None:
        """A description of all that is there now, with which a new generation begins."""
        self._news(found, (*DESCRIBED, "done.json"))
        self._follower, begin = self._described(found)
        self._restarts = self._follower.restarts
        self.log = Log(next(_generations), begin)

    def _described(self, found: Found, *, number: int = 0) -> tuple[Follower, News]:
        if found.size > MOST_READINGS:
            raise UnreadableError(f"its readings have {found.size >> 20} MB; a page takes {MOST_READINGS >> 20}")
        follower = Follower(found.folder, longest=LONGEST_LINE)
        try:
            run = describe(found.folder.path, follower=follower)
        except LeadlineError:
            raise
        except Exception as error:  # whatever a damaged description does to those who read it
            raise UnreadableError(f"cannot be described: {type(error).__name__}: {error}") from None
        self.growing = run["state"] == "growing"
        notes = [self._own(note) for note in run["notes"]]
        run |= {"id": self.word, "name": self._shown(), "notes": notes}
        self._told = {name: run[name] for name in ("state", "outcome", "notes", "axes", "diagnosis")}
        self._told |= {"late": [], "probes": set(run["cards"]), "verdict": self.catalogue.verdict(self.word)}
        return follower, News(number, "run", _line(run))

    def _go_on(self, found: Found, follower: Follower) -> None:
        """News since the last time; the state is looked at first, so that the outcome comes after the last reading."""
        state = found.folder.state()
        while lines := follower.lines(most=PIECE):
            if follower.restarts != self._restarts:
                break
            self._tell_readings(lines)
        if follower.restarts != self._restarts:
            self._begin(found)
            return
        self._tell_state(found, state, follower)
        self._tell_verdict(found)
        log = self.log
        if log is not None and log.size > max(BACKLOG, 2 * len(log.begin.data)):
            self._shorten(found, follower, log)

    def _tell_readings(self, lines: list[Reading]) -> None:
        """The lines as they are, after the cards of probes that were not met before."""
        if unknown := {line["probe"] for line in lines} - self._told["probes"]:
            self._told["probes"] |= unknown
            if cards := explain(sorted(unknown)):
                self._tell("explain", {"cards": cards})
        self._tell("readings", {"readings": lines})

    def _tell_state(self, found: Found, state: str, follower: Follower) -> None:
        told, outcome = self._told, self._told["outcome"]
        if self._news(found, ("done.json",)):
            there = "done.json" in found.files
            outcome = read_json(found.folder.done_json, what="the outcome of a run") if there else None
        notes = list(follower.notes)
        if state != "growing" and (torn := found.size - follower.offset) > 0:
            notes.append(f"a torn last line of {torn} bytes was dropped")
        now = {"state": state, "outcome": outcome, "late": [note for note in notes if note not in told["notes"]]}
        if any(told[name] != value for name, value in now.items()):
            self.growing = state == "growing"
            told |= now
            self._tell("state", {"state": state, "outcome": outcome, "notes": now["late"]})

    def _tell_verdict(self, found: Found) -> None:
        """The list's own verdict, unless one is kept in the folder."""
        verdict = self.catalogue.verdict(self.word)
        if verdict is self._told["verdict"] or verdict is None or found.stamp("diagnosis.json"):
            return
        self._told["verdict"] = verdict
        said = judged.linked({**plain(verdict.to_json()), "from_readings": True}, self._told["axes"])
        if said != self._told["diagnosis"]:
            self._told["diagnosis"] = said
            self._tell("judge", {"diagnosis": said, "rules": judged.rule_cards(said)})

    def _shorten(self, found: Found, follower: Follower, log: Log) -> None:
        """The same generation goes on from a new description; those who had all so far see nothing of it."""
        last = log.last
        self._follower, begin = self._described(found, number=last + 1)
        self._restarts = self._follower.restarts
        rest = follower.lines(most=max(0, self._follower.position - follower.position))
        news = News(last + 1, "readings", _line({"id": self.word, "readings": rest}))
        self.log = Log(log.generation, begin, [news])

    def _tell(self, kind: str, what: Mapping[str, Any]) -> None:
        assert self.log is not None
        news = News(self.log.last + 1, kind, _line({"id": self.word, **what}))
        self.log.news.append(news)
        self.log.size += len(news.data)

    def _shown(self) -> str:
        return text(self._name) if self._name is not None else self.word


def _line(value: Mapping[str, Any]) -> bytes:
    """JSON on one line; what it has no number for as text."""
    try:
        said = json.dumps(value, allow_nan=False, separators=(",", ":"))
    except ValueError:
        said = json.dumps(plain(value), allow_nan=False, separators=(",", ":"))
    return said.encode()
