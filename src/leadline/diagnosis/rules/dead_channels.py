"""Channels are dead: zero on every sample of the batch, so nothing flows through them either way.

Judged at the first boundary where they are most. Normal: none with normalisation, a few behind ReLUs.
"""

import numpy as np

from leadline.diagnosis.evidence import Evidence
from leadline.diagnosis.finding import Remedy
from leadline.diagnosis.rules import Limits, Sign

ID = "LL202"
TITLE = "dead channels"
EXPLAINS = ("LL101", "LL102", "LL103", "LL105", "LL201", "LL401", "LL402", "LL501", "LL502", "LL603")
CHANGE = "channels that are not zero on at least some samples"
REMEDIES = (
    Remedy("he-init", "takes away biases and scales that hold units below zero"),
    Remedy("lower-learning-rate", "where units died in the first steps"),
)
REFERENCE = "Oyedotun, Al Ismaeil, Aouada: section 6, dead units under the condition over channels"


def look(seen: Evidence, limits: Limits) -> Sign | None:
    dead = seen.profile("hidden_condition/dead")
    if not len(dead) or len(dead) != len(seen.blocks) + 1:
        return None
    shares = np.nan_to_num(dead / np.array([max(1, seen.channels(k)) for k in range(len(dead))]))
    worst = int(shares.argmax())
    if shares[worst] < limits["share"]:
        return None
    return Sign(
        severity="error" if shares[worst] >= limits["error"] else "warning",
        strength=float(shares[worst]),
        cause=f"At {seen.boundary(worst)} most channels are zero whatever the input is.",
        evidence=(
            f"{int(dead[worst])} of {seen.channels(worst)} channels are dead at {seen.boundary(worst)}",
            f"more than half of the channels at {int((shares >= 0.5).sum())} of {len(dead)} boundaries",
        ),
    )
