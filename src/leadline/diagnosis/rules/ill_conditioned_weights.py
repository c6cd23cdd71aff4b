"""The trained weights are ill-conditioned: most layers have lost directions.

    kappa(W_i) = sigma_max / sigma_min, by the modes of the kernel

Normal: 10 to 1000. Judged on weights that have been trained for a while, and against what they were before.
"""

import numpy as np

from leadline.diagnosis.evidence import Evidence, decades, finite
from leadline.diagnosis.finding import Remedy
from leadline.diagnosis.rules import Limits, Sign

ID = "LL201"
TITLE = "ill-conditioned weights"
EXPLAINS = ()
CHANGE = "condition numbers that stay below 1000 in most layers"
REMEDIES = (
    Remedy("add-identity-skips", "skips keep trained weights well-conditioned"),
    Remedy("procrustes-transitions", "gives convolutions equal singular values"),
    Remedy("lower-learning-rate", "where the weights were torn apart by the first steps"),
)
REFERENCE = "Oyedotun, Al Ismaeil, Aouada: Theorem 3, Figs 7, 8, 10 and 12"


def look(seen: Evidence, limits: Limits) -> Sign | None:
    kappa = seen.profile("weight_condition/kappa", last=True)
    if len(kappa) < limits["layers"]:
        return None
    bad = kappa > 10 ** limits["decades"]
    share = float(bad.mean())
    if share < limits["share"]:
        return None
    typical = float(np.median(finite(decades(kappa)))) if len(finite(kappa)) else np.inf
    return Sign(
        severity="warning",
        strength=share / 2,
        cause="Most layers map some directions of what they get to almost nothing.",
        evidence=(
            f"kappa above 1e{limits['decades']:g} in {int(bad.sum())} of {len(kappa)} layers, 1e{typical:.1f} in the "
            "median of those that are not singular",
        ),
    )
