"""Branches near zero: what acts last in every residual branch, times 0.01.

Changes: the parameters of the last operation with parameters before each sum of a branch with its skip - a layer's
weight and bias, the gain and bias of a norm that ends the branch (it would undo the scale of the layer before it), a
layer scale. The network then starts near the one without branches, where its Hessian is best conditioned and its
output's variance does not grow with depth (Li et al., section 4.1 and Theorem 2, with the 0.01 used there).
Helps: residual nets without norm whose output explodes; a flat or steep start of very deep ones.
Costs: nothing at run time. The first steps move little but these parameters; with shortcuts of length three and more
the start is flat (Theorem 2). `factor=0` is possible where no activation follows, which would let no gradient in.
Undone: the parameters get the values they had.
"""

from leadline.core.errors import UsageError
from leadline.remedies._treatment import Treatment


def apply(at: Treatment, *, factor: float = 0.01) -> str:
    """`factor` is what the parameters are multiplied by."""
    if not 0 <= factor < 1:
        raise UsageError(f"factor={factor}: expected 0 or more and less than 1")
    joins = [join for block in at.anatomy.blocks for join in at.wiring.joins(block)]
    for act in (act for join in joins for act in at.wiring.acts(join)):
        if factor == 0 and not act.is_last:
            at.leave(act.owner, "an activation follows, through which zeros get no gradient")
            continue
        for name, parameter in act.parameters.items():
            if name not in at.changed:
                at.write(name, parameter, parameter * factor, words=f"times {factor:g}")
    return "its branches end in no parameters" if joins else "no block has a skip"
