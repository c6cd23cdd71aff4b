"""A higher learning rate: that of every group of the optimiser, times 10.

Changes: `lr` (and the base rate that a scheduler built later starts from). A scheduler built before keeps base rates
of its own and may overwrite the change at its next step: build it again.
Helps: a net that is sound and trains, but too slowly: steps far below 2 / lambda_max. The papers' nets with batch norm
start at 0.1 (Zaeemzadeh et al., section 4; Chen et al., appendix B).
Costs: may diverge.
Undone: every group gets its former rate.
"""

from math import inf

from leadline.core.errors import UsageError
from leadline.remedies._rates import scale_rates
from leadline.remedies._treatment import Treatment


def apply(at: Treatment, *, factor: float = 10.0) -> str:
    """`factor` is what the rates are multiplied by."""
    if not 1 < factor < inf:
        raise UsageError(f"factor={factor}: expected more than 1")
    return scale_rates(at, factor)
