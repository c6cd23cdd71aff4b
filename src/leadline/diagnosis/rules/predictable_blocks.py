"""Blocks whose features earlier features predict linearly: they add nothing that a linear head could use.

    predictable_i = 1 - |V_i - [1 V_0 ... V_{i-1}] B|^2 / |V_i - mean V_i|^2

near 1 in most blocks: diminishing feature reuse. Normal: 0 to 0.8.
"""

import numpy as np

from leadline.diagnosis.evidence import Evidence, finite
from leadline.diagnosis.finding import Remedy
from leadline.diagnosis.rules import Limits, Sign

ID = "LL402"
TITLE = "linearly predictable blocks"
EXPLAINS = ()
CHANGE = "features that a linear map of the earlier ones does not reproduce"
REMEDIES = (Remedy("a-resnest-heads", "gives every block's feature its own way to the output"),)
REFERENCE = "Chen, Lee, Garudadri, Rao: section 2.4, eq. (7)"


def look(seen: Evidence, limits: Limits) -> Sign | None:
    found = seen.profile("feature_predictability/predictable", last=True)
    known = finite(found)
    if len(known) < limits["blocks"] or (known >= limits["predictable"]).mean() < limits["share"]:
        return None
    first = int(np.flatnonzero(found >= limits["predictable"])[0])
    return Sign(
        severity="note",
        strength=float((known >= limits["predictable"]).mean()),
        cause="Most blocks make features that a linear map of earlier features would have given.",
        evidence=(
            f"{int((known >= limits['predictable']).sum())} of {len(known)} measured blocks are predictable to "
            f"{limits['predictable']:.0%}, the first is {seen.block(first)}",
        ),
    )
