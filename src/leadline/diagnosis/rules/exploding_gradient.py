"""The gradient explodes on its way back: block after block hands on more than it got.

    ratio_l = ||dE/dx_{l+1}|| / ||dE/dx_l||     below 1 in most blocks; 1 over its product is the growth

The early layers are then trained at a rate that is too high when it is right for the late ones, at any rate.
Normal: 0.9 to 1.1 in every block. Batch norm without skips multiplies by about 1.2 per layer.
"""

import numpy as np

from leadline.diagnosis.evidence import Evidence, finite, slope
from leadline.diagnosis.finding import Remedy
from leadline.diagnosis.rules import Limits, Sign

ID = "LL103"
TITLE = "the gradient explodes with depth"
EXPLAINS = ("LL201", "LL402", "LL501", "LL502", "LL603")
CHANGE = "a gradient-norm ratio near 1 in every block"
REMEDIES = (
    Remedy("add-identity-skips", "the identity hands the gradient on unchanged"),
    Remedy("dirac-reparametrise", "the same without changing the wiring"),
    Remedy("lower-learning-rate", "lets the early layers survive; the late ones then learn slowly"),
)
REFERENCE = "Zaeemzadeh, Rahnavard, Shah: Theorem 1, section 4.1 and Fig. 3"


def look(seen: Evidence, limits: Limits) -> Sign | None:
    known = finite(seen.backward)
    if len(known) < limits["blocks"]:
        return None
    share, grown = float((known > limits["step"]).mean()), float(known.sum())
    per_block = slope(np.cumsum(known))
    if share < limits["share"] or grown < limits["decades"] or per_block <= 0:
        return None
    worst = int(np.nanargmax(np.where(np.isfinite(seen.backward), seen.backward, -np.inf)))
    return Sign(
        severity="error" if grown >= limits["error"] else "warning",
        strength=min(1.0, grown / 4),
        cause=f"Every block multiplies the gradient by about {10 ** (grown / len(known)):.2f} on its way back.",
        evidence=(
            f"the gradient grows {10**grown:.3g}-fold over {len(known)} blocks, in {share:.0%} of them",
            f"slope {per_block:.3f} decades per block; most in {seen.block(worst)}",
        ),
    )
