"""One or a few blocks break the norm of the gradient, and the others keep it.

    |log10 ratio_l| is above a decade in a few blocks, which make up most of all decades along depth

They are usually those that change the number of channels or the resolution. Normal: below 0.3 in every block.
"""

import numpy as np

from leadline.diagnosis.evidence import Evidence
from leadline.diagnosis.finding import Remedy
from leadline.diagnosis.rules import Limits, Sign

ID = "LL104"
TITLE = "the norm is broken at single blocks"
EXPLAINS = ("LL101", "LL102", "LL103", "LL105", "LL201", "LL402", "LL501", "LL502", "LL603")
CHANGE = "a gradient-norm ratio between 0.5 and 2 at the blocks named"
REMEDIES = (
    Remedy("procrustes-transitions", "gives their convolutions equal singular values"),
    Remedy("he-init", "where a weight was started at the wrong scale"),
)
REFERENCE = "Zaeemzadeh, Rahnavard, Shah: section 4 and Fig. 3"


def look(seen: Evidence, limits: Limits) -> Sign | None:
    size = np.abs(np.where(np.isfinite(seen.backward), seen.backward, 0.0))
    outlying = size >= limits["decades"]
    few = 0 < outlying.sum() <= max(limits["most"], limits["share"] * len(size))
    if len(size) < limits["blocks"] or not few:
        return None
    usual = float(np.median(size[~outlying]))
    part = float(size[outlying].sum() / size.sum())
    if usual * limits["times"] > size.max() or part < limits["part"]:
        return None
    places = np.flatnonzero(outlying)
    changing = int(seen.transitions[places].sum())
    named = ", ".join(f"{seen.block(k)} ({10 ** seen.backward[k]:.2g}-fold)" for k in places[:4])
    return Sign(
        severity="error" if size.max() >= limits["error"] else "warning",
        strength=min(1.0, float(size.max()) / 3),
        cause=f"The gradient changes its size at {named} on its way back, and hardly anywhere else.",
        evidence=(
            f"{len(places)} of {len(size)} blocks make {part:.0%} of all decades; {changing} of them change the shape",
            f"the others change it by a factor of {10**usual:.2f} in the median",
        ),
    )
