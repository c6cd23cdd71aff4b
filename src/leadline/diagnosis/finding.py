"""What a diagnosis says: findings with their evidence, the root cause first, under one verdict."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

Severity = Literal["note", "warning", "error"]
Outlook = Literal["healthy", "trains slowly", "will not train", "undecided"]

SEVERITIES: tuple[Severity, ...] = ("note", "warning", "error")


@dataclass(frozen=True)
class Remedy:
    """A change worth trying, by its name among the remedies (or in words), and what it is to do."""

    name: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One cause: what is wrong in a sentence, the numbers that show it, and what to do; consequences folded under it.

    `change` says what would change the verdict, `reference` the theorem or figure that the rule rests on.
    """

    id: str
    severity: Severity
    title: str
    cause: str
    evidence: tuple[str, ...]
    change: str
    remedies: tuple[Remedy, ...]
    reference: str
    consequences: tuple["Finding", ...] = ()

    def lines(self) -> Iterator[str]:
        yield f"{self.id} {self.severity}: {self.title}"
        yield f"  {self.cause}"
        yield from (f"  - {line}" for line in self.evidence)
        for folded in self.consequences:
            yield f"  follows from it: {folded.id} {folded.title} ({folded.evidence[0]})"
        if self.severity != "note":
            yield f"  would change the verdict: {self.change}"
            yield from (f"  {rank}. {one.name}: {one.why}" for rank, one in enumerate(self.remedies, 1))
        yield f"  reference: {self.reference}"


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """The verdict on a model, `confidence` in it from 0 to 1, and the findings, root cause first; prints as text.

    `trainability` orders models by how well they are expected to train: the higher the better.
    """

    verdict: Outlook
    reason: str
    confidence: float
    trainability: float
    findings: tuple[Finding, ...]
    measured: tuple[str, ...]
    seconds: float

    @property
    def root(self) -> Finding | None:
        """The root cause, if anything is wrong and its cause is known."""
        return next((finding for finding in self.findings if finding.severity != "note"), None)

    @property
    def exit_code(self) -> int:
        """1 if there is a finding above a note, or the verdict itself is bad; else 0."""
        return int(self.root is not None or self.verdict in ("trains slowly", "will not train"))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    __repr__ = __str__

    def _lines(self) -> Iterator[str]:
        yield f"verdict: {self.verdict} (confidence {self.confidence:.2f}): {self.reason}"
        for finding in self.findings:
            yield ""
            yield from finding.lines()
        yield ""
        yield f"measured in {self.seconds:.1f} s: {'; '.join(self.measured)}"
