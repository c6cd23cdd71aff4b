"""The output explodes: activations grow with depth, as nothing normalises what branches add or layers multiply.

    log10 max |x_l| rises with l,    and the first loss is above that of saying nothing

A residual net at He's start doubles the variance at every block. Normal: below 10, constant along depth.
"""

import math

import numpy as np

from leadline.diagnosis.evidence import Evidence, finite, slope
from leadline.diagnosis.finding import Remedy
from leadline.diagnosis.rules import Limits, Sign

ID = "LL105"
TITLE = "the output explodes with depth"
EXPLAINS = ("LL101", "LL103", "LL201", "LL402", "LL501", "LL502", "LL603")
CHANGE = "activations of one size along depth, and a first loss near that of guessing"
REMEDIES = (
    Remedy("near-zero-branches", "starts every block as the identity"),
    Remedy("zero-last-norm", "the same where branches end in a norm"),
    Remedy("norm-before-head", "one norm after the last block bounds the output"),
    Remedy("he-init", "where the weights were started too large"),
)
REFERENCE = "Li, Jiao, Han, Weissman: section 4.1; Oyedotun, Al Ismaeil, Aouada: Fig. 4"


def look(seen: Evidence, limits: Limits) -> Sign | None:
    forward = seen.forward
    known = finite(forward)
    if len(known) < limits["boundaries"]:
        return None
    grown, largest = slope(forward) * (len(known) - 1), float(known.max())
    share = float((np.diff(known) > 0).mean())
    asked, chance = seen.course(), seen.number("start/chance")
    loss = asked.losses[0] if asked.losses and math.isnan(asked.start) else asked.start
    excess = loss / chance if chance > 0 else math.nan
    bad_start = excess >= limits["loss"] or (not math.isfinite(loss) if chance > 0 else asked.lost)
    if grown < limits["decades"] or share < limits["share"] or not bad_start:
        return None
    return Sign(
        severity="error" if not math.isfinite(excess) or excess >= limits["error"] else "warning",
        strength=min(1.0, grown / 4),
        cause=f"Nothing keeps the size of the signal: it grows by a factor of {10 ** (grown / (len(known) - 1)):.2f} "
        "at every block.",
        evidence=(
            f"largest activation: {10 ** known[0]:.3g} at the first boundary, {10**largest:.3g} at the largest",
            f"it grows at {share:.0%} of the blocks, {grown:.1f} decades in all",
            f"first loss {loss:.4g}, where saying nothing costs {chance:.4g}",
        ),
    )
