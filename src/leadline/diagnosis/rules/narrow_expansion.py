"""The expansion is too narrow for all features: M < sum of K_i, so that what blocks add is coupled.

M channels carry the features of all blocks; where they are fewer than these together, the coupling loss can be
positive and later blocks compete with earlier ones. Said as a note: nearly every residual network is so.
"""

from leadline.diagnosis.evidence import Evidence
from leadline.diagnosis.finding import Remedy
from leadline.diagnosis.rules import Limits, Sign

ID = "LL403"
TITLE = "an expansion narrower than the features it carries"
EXPLAINS = ()
CHANGE = "nothing: it is a property of the design"
REMEDIES = (Remedy("a-resnest-heads", "linear heads on every block's features need no expansion"),)
REFERENCE = "Chen, Lee, Garudadri, Rao: Assumption 4 and Theorem 1 (coupling loss epsilon)"


def look(seen: Evidence, limits: Limits) -> Sign | None:
    blocks = [number for number, block in enumerate(seen.blocks) if block["kind"] == "identity"]
    if len(blocks) < limits["blocks"]:
        return None
    width = seen.channels(blocks[-1] + 1)
    carried = sum(seen.channels(number + 1) == width for number in blocks)
    if carried <= 1:
        return None
    return Sign(
        severity="note",
        strength=limits["strength"],
        cause=f"{width} channels carry the sum of what {carried} blocks add; a coupling loss above 0 is possible.",
        evidence=(f"M = {width} against sum of K_i of about {carried * width} in the blocks of the last width",),
    )
