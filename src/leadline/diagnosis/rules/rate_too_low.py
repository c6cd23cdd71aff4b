"""The learning rate is too low: from the same start, on the same batches, the network learns at a higher one.

Shown by trial: four times the rate first, much more where that does not do.
"""

from leadline.diagnosis.evidence import Evidence
from leadline.diagnosis.finding import Remedy
from leadline.diagnosis.rules import Limits, Sign

ID = "LL502"
TITLE = "the learning rate is too low"
EXPLAINS = ("LL201", "LL402", "LL603")
CHANGE = "a loss that falls at the rate asked for"
REMEDIES = (Remedy("raise-learning-rate", "by the factor that was tried"),)
REFERENCE = "rehearsal: the same start, batches and number of steps at other rates"

COURSES = {"faster": 4, "much-faster": 256, "very-much-faster": 16384}


def look(seen: Evidence, limits: Limits) -> Sign | None:
    asked = seen.course()
    for name, factor in COURSES.items():
        other = seen.course(name)
        soon = other.learned_within(limits["patience"]) if factor <= 4 else other.learned
        if asked.learned_within(limits["patience"]) or not soon:
            continue
        return Sign(
            severity="error" if factor <= 4 else "warning",
            strength=1.0 if factor <= 4 else limits["far"],
            cause=f"At {factor} times the rate the same network learns from the same start.",
            evidence=(f"at the rate asked for: {asked}", f"at {factor} times it: {other}"),
        )
    return None
