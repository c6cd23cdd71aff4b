"""From evidence to a diagnosis: how training goes, which rules apply, and which of them is the root."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import ModuleType

from leadline.core import plugins
from leadline.core.errors import unknown
from leadline.diagnosis.course import Course
from leadline.diagnosis.evidence import Evidence
from leadline.diagnosis.finding import SEVERITIES, Along, Diagnosis, Finding, Outlook, Severity
from leadline.diagnosis.rules import Limits, Sign
from leadline.diagnosis.thresholds import Thresholds, thresholds

PACKAGE = "leadline.diagnosis.rules"
RATES = "LL5"
"""How the ids of findings about the learning rate begin."""
DEPTH = ("gradient_norm_ratio/norm", "activation_range/max", "collinearity/cosine", "weight_condition/kappa")
"""What is drawn along depth under a diagnosis."""


@dataclass(frozen=True)
class Outcome:
    """What training tells: the outlook, why, how sure, a number that orders outcomes, and what it leans to if open.

    That number is below 0 where it will not train, above 1 where it has learned, and in between where it is slow.
    """

    outlook: Outlook
    reason: str
    confidence: float
    trainability: float
    leaning: Outlook = "undecided"


def rules() -> dict[str, ModuleType]:
    """Every rule's module by its file's name."""
    return {name: plugins.module(PACKAGE, name, kind="rule") for name in plugins.names(PACKAGE)}


def chosen(select: Collection[str] = (), ignore: Collection[str] = ()) -> dict[str, ModuleType]:
    """The rules with these ids, or all, without those to be ignored; an id can be cut short: LL1 means all LL1xx."""
    found = rules()
    ids = [module.ID for module in found.values()]
    for prefix in (*select, *ignore):
        if not any(id.startswith(prefix) for id in ids):
            raise unknown("finding", prefix, ids, listing="leadline list rules")
    return {
        name: module
        for name, module in found.items()
        if (not select or module.ID.startswith(tuple(select))) and not module.ID.startswith(tuple(ignore) or "-")
    }


def judge(
    evidence: Evidence,
    *,
    seconds: float = 0.0,
    limits: Thresholds | None = None,
    select: Collection[str] = (),
    ignore: Collection[str] = (),
) -> Diagnosis:
    """The diagnosis of what was read."""
    limits = limits or thresholds()
    signs: dict[ModuleType, Sign] = {}
    for name, module in chosen(select, ignore).items():
        sign = module.look(evidence, limits.get(name, {}))
        if sign is not None:
            signs[module] = sign
    course, bounds = evidence.course(), limits["verdict"]
    fair = course.level <= bounds["fair"] or evidence.course("one-batch").learned_within(bounds["patience"])
    outcome = decide(outcome_of(course, bounds), signs, fair=fair)
    return Diagnosis(
        verdict=outcome.outlook,
        reason=outcome.reason,
        confidence=outcome.confidence,
        trainability=outcome.trainability,
        findings=arrange(signs, outcome.outlook),
        measured=_measured(evidence),
        seconds=seconds,
        depth=tuple(along_depth(evidence)),
    )


def along_depth(evidence: Evidence) -> Iterator[Along]:
    """The readings of DEPTH there are, as they were first read."""
    for metric in DEPTH:
        values = evidence.profile(metric)
        if len(values) > 1:
            yield Along(metric, tuple(values.tolist()))


def is_settled(evidence: Evidence) -> bool:
    """Is there an error to be seen before anything is trained?"""
    limits = thresholds()
    signs = (module.look(evidence, limits.get(name, {})) for name, module in rules().items())
    return any(sign is not None and sign.severity == "error" for sign in signs)


# -- the verdict ---------------------------------------------------------------------------------------------------


def outcome_of(course: Course, limits: Limits) -> Outcome:
    """What the losses alone say."""
    if course.lost:
        return Outcome("will not train", f"the loss stops being a number: {course}", 1.0, -math.inf)
    if course.learned:
        speed = limits["patience"] / course.reach
        outlook: Outlook = "healthy" if speed >= 1 else "trains slowly"
        return Outcome(outlook, f"it learns: {course}", _sure(abs(math.log2(speed))), 1 + speed)
    if course.steps < limits["patience"] and course.steps > 1 and course.latest <= limits["fair"]:
        return Outcome("healthy", f"it was learning when it ended: {course}", 0.6, 2.0 - course.latest)
    if course.steps < limits["few"]:
        return Outcome("undecided", f"too few steps to tell: {course}", 0.0, 0.0)
    if course.steps < limits["patience"]:
        return _cut_short(course, limits)
    return _slow_or_never(course, limits)


def _cut_short(course: Course, limits: Limits) -> Outcome:
    """The budget ended it: is it on its way? The signs decide in `decide`."""
    ahead = course.forecast(limits["patience"])
    ease = limits["below"] - ahead
    if ahead <= limits["below"]:
        return Outcome("undecided", f"it was learning when it ended: {course}", 0.6, ease, "healthy")
    return Outcome("undecided", f"too few steps to tell: {course}", 0.3, ease)


def _slow_or_never(course: Course, limits: Limits) -> Outcome:
    ahead = course.forecast(limits["horizon"])
    ease = limits["below"] - ahead
    confidence = _sure(5 * abs(ease))
    if abs(ease) < limits["margin"]:
        return Outcome("undecided", f"it hardly learns, if at all: {course}", 0.3, ease)
    if course.level > 1 and (ease > 0 or course.fallen >= limits["falling"]):
        reason = f"it falls, but is still worse than guessing: {course}"
        return Outcome("undecided", reason, 0.3, ease / course.level, "trains slowly")
    if ease > 0:
        return Outcome("trains slowly", f"it learns slowly: {course}", confidence, ease)
    return Outcome("will not train", f"it does not learn: {course}", confidence, ease)


def _sure(distance: float) -> float:
    """From 0.5 at the border to 1 far from it."""
    return round(1 - 0.5 * math.exp(-2 * distance), 2)


def decide(outcome: Outcome, signs: Mapping[ModuleType, Sign], *, fair: bool = False) -> Outcome:
    """Where the losses leave it open the signs decide; fair progress without any sign of trouble will do.

    So does slow progress on data of which a single batch is learned soon: then the data are hard, not the network.

    That another rate serves better says nothing about whether this one would in the end: then what the losses lean to.
    """
    grave = {rule.ID[:3] for rule, sign in signs.items() if sign.severity == "error"}
    quiet = all(sign.severity == "note" for sign in signs.values())
    if outcome.outlook == "trains slowly" and quiet and fair:
        return replace(outcome, outlook="healthy", confidence=0.6)
    if outcome.outlook != "undecided":
        return outcome
    if grave - {RATES}:
        return replace(outcome, outlook="will not train", confidence=0.6, trainability=min(0.0, outcome.trainability))
    if grave or (outcome.leaning == "healthy" and quiet):
        return replace(outcome, outlook=outcome.leaning)
    return replace(outcome, outlook="trains slowly") if outcome.leaning == "healthy" else outcome


# -- the root ------------------------------------------------------------------------------------------------------


def arrange(signs: Mapping[ModuleType, Sign], outlook: Outlook) -> tuple[Finding, ...]:
    """The findings, root first; what one explains is folded under it, and nothing but notes is said of what trains."""
    if outlook == "healthy":
        return tuple(_finding(rule, replace(sign, severity="note")) for rule, sign in _ordered(signs))
    notes = {rule: sign for rule, sign in signs.items() if sign.severity == "note"}
    causes = {rule: sign for rule, sign in signs.items() if sign.severity != "note"}
    roots = _ordered({r: s for r, s in causes.items() if not any(_explains(c, t, r, s) for c, t in causes.items())})
    found, folded = [], set[str]()
    for rule, sign in roots:
        below = [(r, s) for r, s in _ordered(signs) if r.ID in rule.EXPLAINS and r.ID not in folded]
        folded |= {r.ID for r, _ in below}
        found.append(_finding(rule, sign, consequences=tuple(_finding(r, s) for r, s in below)))
    rest = [replace(one, severity="note") for one in found[1:]]
    loose = [_finding(rule, sign) for rule, sign in _ordered(notes) if rule.ID not in folded]
    return (*found[:1], *rest, *loose)


def _explains(cause: ModuleType, sign: Sign, other: ModuleType, others: Sign) -> bool:
    """Does one follow from the other? What is an error does not follow from a mere warning."""
    return other.ID in cause.EXPLAINS and SEVERITIES.index(sign.severity) >= SEVERITIES.index(others.severity)


def _ordered(signs: Mapping[ModuleType, Sign]) -> Sequence[tuple[ModuleType, Sign]]:
    def weight(item: tuple[ModuleType, Sign]) -> tuple[int, float, str]:
        rule, sign = item
        return -SEVERITIES.index(sign.severity), -sign.strength, rule.ID

    return sorted(signs.items(), key=weight)


def _finding(rule: ModuleType, sign: Sign, *, consequences: tuple[Finding, ...] = ()) -> Finding:
    severity: Severity = sign.severity
    return Finding(
        id=rule.ID,
        severity=severity,
        title=rule.TITLE,
        cause=sign.cause,
        evidence=sign.evidence,
        change=rule.CHANGE,
        remedies=rule.REMEDIES,
        reference=rule.REFERENCE,
        consequences=consequences,
    )


def _measured(evidence: Evidence) -> tuple[str, ...]:
    probes = list(dict.fromkeys(evidence.readings["probe"].tolist()))
    asked = evidence.course()
    others = sum(probe == "rehearsal" for probe in evidence.readings["probe"])
    return (
        f"{len(evidence.blocks)} blocks",
        f"{asked.steps} steps at the rate asked for" + (f" and {others} others" if others else ""),
        ", ".join(name for name in probes if name not in ("loss", "start", "rehearsal")),
    )
