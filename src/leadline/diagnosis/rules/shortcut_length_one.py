"""Skips over single layers: the condition of the Hessian at zero grows with depth.

With shortcut length 1 the Hessian at zero is as badly conditioned as that of a plain linear network of few layers; from
2 on its condition does not depend on depth. Said as a note, or a warning where training is slow and nothing else is.
"""

import numpy as np

from leadline.diagnosis.evidence import Evidence
from leadline.diagnosis.finding import Remedy
from leadline.diagnosis.rules import Limits, Sign

ID = "LL302"
TITLE = "shortcut length 1"
EXPLAINS = ("LL402",)
CHANGE = "skips over two layers each"
REMEDIES = (Remedy("lower-learning-rate", "the step has to fit the steepest direction"),)
REFERENCE = "Li, Jiao, Han, Weissman: Theorem 2, eqs (31) and (32), Fig. 4"


def look(seen: Evidence, limits: Limits) -> Sign | None:
    lengths = np.array([max(block["lengths"]) for block in seen.blocks if block["kind"] == "identity"])
    if len(lengths) < limits["blocks"] or (lengths == 1).mean() < limits["share"]:
        return None
    return Sign(
        severity="warning",
        strength=limits["strength"],
        cause="Each skip spans a single layer, so the curvature at the start grows with the number of blocks.",
        evidence=(f"{int((lengths == 1).sum())} of {len(lengths)} identity skips span one layer",),
    )
