"""Rules: one finding per file, a plain module; what such a module has to have.

`ID`, `TITLE`, `CHANGE`, `REMEDIES`, `REFERENCE` as a Finding has them, `EXPLAINS` the ids of findings that follow from
this one, and `look(seen, limits)`: what speaks for it, or None. Its docstring is its card (`leadline explain`); its
limits stand in thresholds.yaml under the file's name.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from leadline.diagnosis.evidence import Evidence
from leadline.diagnosis.finding import Remedy, Severity

Limits = Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Sign:
    """That a rule applies: how bad, how clearly (from 0 to 1), the cause in a sentence, and the numbers."""

    severity: Severity
    strength: float
    cause: str
    evidence: tuple[str, ...]


class Rule(Protocol):
    """What a rule's module has."""

    ID: str
    TITLE: str
    CHANGE: str
    REMEDIES: tuple[Remedy, ...]
    REFERENCE: str
    EXPLAINS: tuple[str, ...]

    def look(self, seen: Evidence, limits: Limits) -> Sign | None: ...
