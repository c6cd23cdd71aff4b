"""A lower learning rate: that of every group of the optimiser, times 0.1.

Changes: `lr` (and the base rate that a scheduler built later starts from). A scheduler built before keeps base rates
of its own and may overwrite the change at its next step: build it again.
Helps: a net that is sound but diverges, or whose loss leaps: the largest curvature allows no step above
2 / lambda_max. ResNEsts needed a tenth of the usual 0.1 (Chen et al., appendix B).
Costs: more steps to the same place.
Undone: every group gets its former rate.
"""

from leadline.core.errors import UsageError
from leadline.remedies._rates import scale_rates
from leadline.remedies._treatment import Treatment


def apply(at: Treatment, *, factor: float = 0.1) -> str:
    """`factor` is what the rates are multiplied by."""
    if not 0 < factor < 1:
        raise UsageError(f"factor={factor}: expected more than 0 and less than 1")
    return scale_rates(at, factor)
