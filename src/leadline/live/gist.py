"""Gist: what of a run's readings its verdict rests on, kept while the file is followed; little, however long it is."""

from array import array
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from leadline.core.table import Table
from leadline.diagnosis.evidence import Evidence
from leadline.store.reader import Follower, Reading, to_table

COURSES = ("loss", "rehearsal")
"""Probes whose every number counts; of all others the first and the last reading do."""
POINTS = 48
MOST_METRICS = 20_000
"""More are left out: a damaged file must not fill the memory."""

Metric = tuple[str, str]


@dataclass
class Course:
    """The numbers of one metric over the steps."""

    steps: "array[int]" = field(default_factory=lambda: array("q"))
    values: "array[float]" = field(default_factory=lambda: array("d"))

    def table(self, metric: Metric) -> Table:
        count = len(self.steps)
        columns: dict[str, Any] = {"step": np.array(self.steps, dtype=np.int64)}
        for name, text in zip(("probe", "name", "note"), (*metric, ""), strict=True):
            columns[name] = np.full(count, text, dtype=object)
        columns |= {"block": np.full(count, -1, dtype=np.int64), "value": np.array(self.values, dtype=np.float64)}
        return Table({name: columns[name] for name in ("step", "probe", "name", "block", "value", "note")})


@dataclass
class Gist:
    """Reads on in bounded pieces; a file that begins again is read again, and what was kept of it forgotten."""

    follower: Follower
    first: dict[Metric, Reading] = field(default_factory=dict)
    last: dict[Metric, Reading] = field(default_factory=dict)
    courses: dict[Metric, Course] = field(default_factory=dict)
    restarts: int = 0

    def read_on(self, most: int) -> int:
        """Reads at most so many bytes further; how many readings there were."""
        lines = self.follower.lines(most=most)
        if self.follower.restarts != self.restarts:
            self.restarts = self.follower.restarts
            for kept in (self.first, self.last, self.courses):
                kept.clear()
        for reading in lines:
            self._keep(reading)
        return len(lines)

    def _keep(self, reading: Reading) -> None:
        metric, step = (reading["probe"], reading["name"]), reading["step"]
        if len(self.first) + len(self.courses) >= MOST_METRICS and not (metric in self.first or metric in self.courses):
            return
        if reading["probe"] in COURSES and type(reading["value"]) is not list:
            course = self.courses.setdefault(metric, Course())
            course.steps.append(step)
            course.values.append(float(reading["value"]))
            return
        if step < self.first.setdefault(metric, reading)["step"]:
            self.first[metric] = reading
        if step >= self.last.setdefault(metric, reading)["step"]:
            self.last[metric] = reading

    def evidence(self, record: dict[str, Any]) -> Evidence:
        """What the rules would find in all of the readings."""
        ends = list(self.first.values())
        ends += [reading for metric, reading in self.last.items() if reading is not self.first[metric]]
        tables = [course.table(metric) for metric, course in self.courses.items()]
        return Evidence(record, Table.concat([*tables, to_table(ends)]))

    def losses(self, points: int = POINTS) -> list[float]:
        """The training losses, evenly thinned to so many."""
        values = self.courses[("loss", "train/loss")].values if ("loss", "train/loss") in self.courses else array("d")
        if len(values) <= points:
            return values.tolist()
        return [values[k * (len(values) - 1) // (points - 1)] for k in range(points)]
