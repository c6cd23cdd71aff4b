"""Labels or data are at fault: one batch can be learned by heart, fresh batches teach nothing.

Signal, gradient and curvature are sound, the network fits a single batch, but no rate brings the loss on fresh batches
below that of guessing: what the labels say does not depend on the inputs.
"""

from leadline.diagnosis.evidence import Evidence
from leadline.diagnosis.finding import Remedy
from leadline.diagnosis.rules import Limits, Sign

ID = "LL603"
TITLE = "labels or data"
EXPLAINS = ("LL201", "LL402")
CHANGE = "a loss on fresh batches that falls below that of guessing"
REMEDIES = (
    Remedy("check-labels", "are inputs and labels shuffled together, is the label column the right one?"),
    Remedy("look-at-inputs", "show a few inputs with their labels as the network gets them"),
)
REFERENCE = "rehearsal: one batch again and again against fresh batches"

OTHERS = ("slower", "faster", "much-slower", "much-faster")


def look(seen: Evidence, limits: Limits) -> Sign | None:
    asked, single = seen.course(), seen.course("one-batch")
    if not asked.steps or not single.steps or single.level > limits["single"]:
        return None
    if min(seen.course(name).lowest for name in ("", *OTHERS)) < limits["fresh"]:
        return None
    return Sign(
        severity="error",
        strength=min(1.0, max(0.0, 1 - single.level)),
        cause="The network learns one batch by heart and nothing from fresh ones: labels do not follow from inputs.",
        evidence=(f"on fresh batches: {asked}", f"on one batch again and again: {single}"),
    )
