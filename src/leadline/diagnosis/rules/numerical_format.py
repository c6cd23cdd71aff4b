"""A number overflows its format: activations become infinite though nothing had grown before.

Half precision ends at 65504. Told from an explosion by what stands in front: activations of ordinary size.
"""

import numpy as np

from leadline.diagnosis.evidence import Evidence, finite
from leadline.diagnosis.finding import Remedy
from leadline.diagnosis.rules import Limits, Sign

ID = "LL701"
TITLE = "numerical format"
EXPLAINS = (
    *("LL101", "LL102", "LL103", "LL104", "LL105", "LL201", "LL202", "LL301", "LL302", "LL401"),
    *("LL402", "LL501", "LL502", "LL603"),
)
CHANGE = "finite activations at every boundary"
REMEDIES = (
    Remedy("use-bf16", "bfloat16 or single precision at the place named; half precision ends at 65504"),
    Remedy("rescale", "divide before the conversion, not after it"),
)
REFERENCE = "IEEE 754 half precision: largest finite number 65504"


def look(seen: Evidence, limits: Limits) -> Sign | None:
    forward = seen.forward
    over = np.flatnonzero(np.isinf(forward) & (forward > 0))
    if not len(over):
        return None
    place = int(over[0])
    before = finite(forward[:place])
    if len(before) and before.max() > limits["decades"]:
        return None
    size = f"{10 ** before.max():.3g}" if len(before) else "not known"
    return Sign(
        severity="error",
        strength=1.0,
        cause=f"Values stop being numbers at {seen.boundary(place)}, though nothing had grown before it.",
        evidence=(
            f"not finite at {len(over)} of {len(forward)} boundaries, from {seen.boundary(place)} on",
            f"largest activation before it: {size}",
        ),
    )
