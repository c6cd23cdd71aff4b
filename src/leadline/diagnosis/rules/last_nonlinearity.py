"""A nonlinearity stands behind the last residual sum: the last representation is rectified.

The head then sees no linear combination of the branches' features, and the guarantees that depth cannot hurt do not
hold. Said as a note: most residual networks are built like this and train.
"""

from leadline.diagnosis.evidence import Evidence
from leadline.diagnosis.finding import Remedy
from leadline.diagnosis.rules import Limits, Sign

ID = "LL404"
TITLE = "a nonlinearity behind the last sum"
EXPLAINS = ()
CHANGE = "nothing: it is a property of the design"
REMEDIES = (Remedy("a-resnest-heads", "linear heads on every block's features, with a guarantee"),)
REFERENCE = "Chen, Lee, Garudadri, Rao: section 2, eq. (2), Theorem 1"


def look(seen: Evidence, limits: Limits) -> Sign | None:
    low, high = seen.profile("activation_range/min"), seen.profile("activation_range/max")
    skips = [block for block in seen.blocks if block["kind"] != "plain"]
    if not len(low) or not skips or seen.blocks[-1]["kind"] == "plain" or not (low[-1] >= 0 and high[-1] > 0):
        return None
    return Sign(
        severity="note",
        strength=limits["strength"],
        cause="The last representation is rectified after the last sum, as in the first residual networks.",
        evidence=(f"no value below 0 at {seen.boundary(len(low) - 1)} (largest {high[-1]:.3g})",),
    )
