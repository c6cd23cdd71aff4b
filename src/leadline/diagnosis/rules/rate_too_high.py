"""The learning rate is too high: from the same start, on the same batches, the network learns at a lower one.

Shown by trial: a quarter of the rate first, much less where that does not do. Where even a quarter suffices this is
the root; where it takes a far lower rate, a network that multiplies its gradient may be behind it.
"""

from leadline.diagnosis.evidence import Evidence
from leadline.diagnosis.finding import Remedy
from leadline.diagnosis.rules import Limits, Sign

ID = "LL501"
TITLE = "the learning rate is too high"
EXPLAINS = ("LL201", "LL402", "LL502", "LL603")
CHANGE = "a loss that falls at the rate asked for"
REMEDIES = (
    Remedy("lower-learning-rate", "by the factor that was tried"),
    Remedy("zero-last-norm", "starts branches at zero, which bears higher rates"),
)
REFERENCE = "rehearsal: the same start, batches and number of steps at other rates"

COURSES = {"slower": 4, "much-slower": 256, "very-much-slower": 16384}


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
            cause=f"At 1/{factor} of the rate the same network learns from the same start.",
            evidence=(
                f"at the rate asked for: {asked}",
                f"at 1/{factor} of it: {other}",
            ),
        )
    return None
