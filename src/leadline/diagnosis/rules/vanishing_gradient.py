"""The gradient vanishes on its way back: block after block hands on less than it got.

    ratio_l = ||dE/dx_{l+1}|| / ||dE/dx_l||     above 1 in most blocks; its running product grows with depth

or the signal shrinks going forward, which starves the weights the same way. Normal: 0.9 to 1.1.
"""

import numpy as np

from leadline.diagnosis.evidence import Evidence, finite, slope
from leadline.diagnosis.finding import Remedy
from leadline.diagnosis.rules import Limits, Sign

ID = "LL102"
TITLE = "signal or gradient vanishes with depth"
EXPLAINS = ("LL201", "LL402", "LL501", "LL502", "LL603")
CHANGE = "a gradient-norm ratio near 1 in every block, and activations of one size along depth"
REMEDIES = (
    Remedy("he-init", "keeps the variance of signal and gradient at the start"),
    Remedy("add-identity-skips", "carries the gradient past every block unchanged"),
    Remedy("dirac-reparametrise", "W + diag(a) without changing the wiring"),
)
REFERENCE = "Zaeemzadeh, Rahnavard, Shah: Theorem 1 and Fig. 3; Oyedotun, Al Ismaeil, Aouada: Theorem 2"


def look(seen: Evidence, limits: Limits) -> Sign | None:
    backward, forward = seen.backward, seen.forward
    if not len(backward):
        return None
    known = finite(backward)
    share = float((known < -limits["step"]).mean()) if len(known) else 0.0
    lost = -float(known.sum())
    dead = [k for k, norm in enumerate(seen.profile("gradient_norm_ratio/norm")) if norm == 0]
    shrunk = -slope(forward) * (len(forward) - 1)
    fading = lost >= limits["decades"] and share >= limits["share"]
    starving = shrunk >= limits["decades"] and (np.diff(forward) < 0).mean() >= limits["share"]
    silent = len(dead) >= limits["silent"] * len(backward)
    if not (fading or starving or silent):
        return None
    lines = [f"going back, {share:.0%} of the blocks shrink the gradient; {lost:.1f} decades over {len(known)} blocks"]
    if dead:
        lines.append(f"the gradient is zero at the input of {len(dead)} blocks, up to {seen.block(dead[-1])}")
    if starving:
        lines.append(f"activations shrink by {shrunk:.1f} decades from the first boundary to the last")
    worst = max(lost, shrunk, 10.0 if silent else 0.0)
    return Sign(
        severity="error" if worst >= limits["error"] else "warning",
        strength=min(1.0, worst / 10),
        cause="What is sent through the blocks gets smaller at every one of them, so the far layers learn nothing.",
        evidence=tuple(lines),
    )
