"""What a diagnosis says: findings with their evidence, the root cause first, under one verdict."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from leadline.core import markup
from leadline.core.rows import grid
from leadline.core.sparkline import sparkline

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
        yield self._headline
        yield f"  {self.cause}"
        yield from (f"  - {line}" for line in self.evidence)
        yield from (f"  {line}" for line in self._remarks())
        yield from (f"  {rank}. {line}" for rank, line in enumerate(self._changes(), 1))
        yield f"  reference: {self.reference}"

    def html(self) -> str:
        """The same for a notebook."""
        parts = [markup.words(self._headline, strong=True), markup.words(self.cause), markup.listing(self.evidence)]
        parts += map(markup.words, self._remarks())
        parts += [markup.listing(self._changes(), numbered=True), markup.words(f"reference: {self.reference}")]
        return "".join(parts)

    @property
    def _headline(self) -> str:
        return f"{self.id} {self.severity}: {self.title}"

    def _remarks(self) -> Iterator[str]:
        for folded in self.consequences:
            yield f"follows from it: {folded.id} {folded.title} ({folded.evidence[0]})"
        if self.severity != "note":
            yield f"would change the verdict: {self.change}"

    def _changes(self) -> list[str]:
        return [f"{one.name}: {one.why}" for one in self.remedies if self.severity != "note"]


@dataclass(frozen=True)
class Along:
    """A reading along depth, from the first block to the last."""

    metric: str
    values: tuple[float, ...]

    def row(self) -> tuple[str, ...]:
        known = [value for value in self.values if value == value]
        ends = (f"{min(known):.3g}", f"{max(known):.3g}") if known else ("", "")
        return self.metric, sparkline(self.values), *ends


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """The verdict on a model, `confidence` in it from 0 to 1, and the findings, root cause first; prints as text.

    `trainability` orders models by how well they are expected to train: the higher the better. `depth` has the readings
    along depth that it rests on.
    """

    verdict: Outlook
    reason: str
    confidence: float
    trainability: float
    findings: tuple[Finding, ...]
    measured: tuple[str, ...]
    seconds: float
    depth: tuple[Along, ...] = ()

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
        yield self._verdict
        for finding in self.findings:
            yield ""
            yield from finding.lines()
        if self.depth:
            yield ""
            yield grid(_HEADINGS, [each.row() for each in self.depth], right=_RIGHT)
        yield ""
        yield self._measured

    def _repr_html_(self) -> str:
        shown = markup.table(_HEADINGS, [each.row() for each in self.depth], right=_RIGHT) if self.depth else ""
        findings = [finding.html() for finding in self.findings]
        return markup.block(markup.words(self._verdict, strong=True), *findings, shown, markup.words(self._measured))

    @property
    def _verdict(self) -> str:
        return f"verdict: {self.verdict} (confidence {self.confidence:.2f}): {self.reason}"

    @property
    def _measured(self) -> str:
        return f"measured in {self.seconds:.1f} s: {'; '.join(self.measured)}"


_HEADINGS = ("along depth", "first to last", "least", "largest")
_RIGHT = (2, 3)
