"""Zero gain of the last norm in every residual branch: each block starts as its skip.

Changes: the gain (not the bias) of a norm that ends a branch, set to 0, as Goyal et al. 2017 start large ResNets; it
is the start at zero of Li et al., section 4.1, in its form for nets with norms. A norm with an activation or a layer
behind it is not the last word of its branch and is left alone: zeros before a ReLU would let no gradient in for good.
Helps: deep nets with norms, at high rates in the first steps; blocks whose branches drown out their skips.
Costs: nothing at run time; in the first step the gains alone learn.
Undone: the gains get the values they had.
"""

from leadline.remedies._treatment import Treatment
from leadline.remedies._wiring import is_norm


def apply(at: Treatment) -> str:
    """Without options."""
    joins = [join for block in at.anatomy.blocks for join in at.wiring.joins(block)]
    for act in (act for join in joins for act in at.wiring.acts(join)):
        gain = act.parameters.get(f"{act.owner}.weight")
        if gain is None or not is_norm(at.model.get_submodule(act.owner)):
            continue
        if not act.is_last:
            at.leave(act.owner, "an activation follows, through which zeros get no gradient")
        elif act.owner not in at.changed:
            at.write(act.owner, gain, gain * 0, words="gain 0")
    return "no branch ends in a norm with a gain" if joins else "no block has a skip"
