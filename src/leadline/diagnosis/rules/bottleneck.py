"""A block lets fewer directions through than it is given: the rank over the channels falls to a fraction.

    rank_l, the number of singular values over channels that are not lost, falls at one block

Normal: constant or rising along depth, where there are samples and pixels enough to see it. A stem that makes more
channels than its patches have entries is not meant.
"""

import math

import numpy as np

from leadline.diagnosis.evidence import Evidence
from leadline.diagnosis.finding import Remedy
from leadline.diagnosis.rules import Limits, Sign

ID = "LL401"
TITLE = "a block too narrow for what it carries"
EXPLAINS = ("LL101", "LL201", "LL402", "LL603")
CHANGE = "as many independent channels behind the block as before it"
REMEDIES = (Remedy("add-identity-skips", "a skip around the narrow block carries what it drops"),)
REFERENCE = "Chen, Lee, Garudadri, Rao: Assumption 4 and Proposition 2"


def look(seen: Evidence, limits: Limits) -> Sign | None:
    rank = seen.profile("hidden_condition/rank/channel")
    if len(rank) < 2 or len(rank) != len(seen.blocks) + 1:
        return None
    before = np.nan_to_num(rank)[:-1]
    columns = np.array([math.prod(block["out_shape"]) for block in seen.blocks]) / [
        seen.channels(number + 1) for number in range(len(seen.blocks))
    ]
    fall = np.where((rank[1:] > 0) & (rank[1:] < columns), rank[1:], np.nan) / np.maximum(before, 1)
    if not np.isfinite(fall).any() or np.nanmin(fall) > limits["kept"]:
        return None
    worst = int(np.nanargmin(fall))
    return Sign(
        severity="warning",
        strength=1 - float(fall[worst]),
        cause=f"Behind {seen.block(worst)} only {rank[worst + 1]:.0f} independent channels are left.",
        evidence=(
            f"rank over the channels: {before[worst]:.0f} before {seen.block(worst)}, {rank[worst + 1]:.0f} after",
        ),
    )
