"""All samples look alike to the deep layers: the representations become collinear with depth.

    cosine_l = mean over i != j of |<h_i, h_j>| / (||h_i|| ||h_j||)

is near 1 at the last boundary and has risen on the way, or the samples have become zero altogether.
Normal: constant along depth, 0.3 to 0.8 behind ReLUs.
"""

import numpy as np

from leadline.diagnosis.evidence import Evidence, Numbers, finite
from leadline.diagnosis.finding import Remedy, Severity
from leadline.diagnosis.rules import Limits, Sign

ID = "LL101"
TITLE = "the signal collapses with depth"
EXPLAINS = ("LL102", "LL103", "LL201", "LL402", "LL501", "LL502", "LL603")
CHANGE = "a mean |cosine| that stays where it was at the first block"
REMEDIES = (
    Remedy("add-identity-skips", "keeps the representations of different samples distinct"),
    Remedy("dirac-reparametrise", "the same without skips: W + diag(a) keeps directions alive"),
    Remedy("he-init", "keeps the variance of the signal at the start"),
)
REFERENCE = "Oyedotun, Al Ismaeil, Aouada: Theorem 1 and Remark 1, Fig. 9"


def look(seen: Evidence, limits: Limits) -> Sign | None:
    found = _collapse(seen.profile("collinearity/cosine"), limits)
    if found:
        return _sign(seen, found, when="at the start", severity="error" if found[1] >= limits["error"] else "warning")
    found = _collapse(seen.profile("collinearity/cosine", last=True), limits)
    return _sign(seen, found, when="after the first steps", severity="warning") if found else None


def _collapse(cosine: Numbers, limits: Limits) -> tuple[float, float, int] | None:
    """The mean |cosine| at the first and at the last boundaries, and where it passes the limit."""
    known = finite(cosine)
    if len(known) < limits["boundaries"]:
        return None
    tenth = max(1, len(known) // 10)
    first, last = float(known[:tenth].mean()), float(known[-tenth:].mean())
    risen = (last - first) / max(1e-9, 1 - first)
    if last < limits["collinear"] or risen < limits["risen"]:
        return None
    return first, last, int(np.flatnonzero(np.isfinite(cosine) & (cosine >= limits["collinear"]))[0])


def _sign(seen: Evidence, found: tuple[float, float, int], *, when: str, severity: Severity) -> Sign:
    first, last, place = found
    return Sign(
        severity=severity,
        strength=last,
        cause="Every block makes different samples more alike, until the last ones see the same input for all of them.",
        evidence=(
            f"mean |cosine| between samples {when}: {first:.3f} at the first boundaries, {last:.5f} at the last",
            f"they are nearly collinear from {seen.boundary(place)} on (boundary {place} of {len(seen.blocks)})",
        ),
    )
