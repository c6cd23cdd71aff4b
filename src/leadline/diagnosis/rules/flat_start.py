"""A flat start: skips over three or more layers with branches near zero, where gradient and curvature vanish.

With shortcut length n >= 3 the Hessian at zero is zero, so that the branches get no gradient to leave it by; with
branches that are exactly zero in more than one layer the same holds for n = 2.
"""

import numpy as np

from leadline.diagnosis.evidence import Evidence
from leadline.diagnosis.finding import Remedy
from leadline.diagnosis.rules import Limits, Sign

ID = "LL301"
TITLE = "a flat stationary start"
EXPLAINS = ("LL201", "LL402", "LL501", "LL502", "LL603")
CHANGE = "skips over two layers, or branches that do not start near zero"
REMEDIES = (
    Remedy("he-init", "starts the branches away from the flat point"),
    Remedy("raise-learning-rate", "leaves the flat region sooner"),
)
REFERENCE = "Li, Jiao, Han, Weissman: Theorem 2"


def look(seen: Evidence, limits: Limits) -> Sign | None:
    skipping = np.array([block["kind"] == "identity" for block in seen.blocks], dtype=bool)
    if skipping.sum() < limits["blocks"] or len(seen.backward) != len(skipping):
        return None
    lengths = [max(block["lengths"]) for block in seen.blocks if block["kind"] == "identity"]
    quiet = np.abs(seen.backward[skipping]) < limits["decades"]
    longest = float(np.median(lengths))
    if longest < limits["length"] or quiet.mean() < limits["share"]:
        return None
    return Sign(
        severity="warning",
        strength=float(quiet.mean()),
        cause=f"Skips over {longest:.0f} layers start with branches near zero, where the loss is flat.",
        evidence=(
            f"{quiet.mean():.0%} of {len(lengths)} blocks with an identity skip change the gradient by less than "
            f"{10 ** limits['decades'] - 1:.1%}",
            f"shortcut length {longest:.0f} in the median; gradient and Hessian at zero vanish from 3 on",
        ),
    )
