"""The loss is not connected to the parameters: no gradient comes to most of them, though they are to be trained.

A detached tensor, a branch that is not used, an output that is computed without gradients.
"""

from leadline.diagnosis.evidence import Evidence
from leadline.diagnosis.finding import Remedy
from leadline.diagnosis.rules import Limits, Sign

ID = "LL601"
TITLE = "the loss is not connected to the parameters"
EXPLAINS = (
    *("LL101", "LL102", "LL103", "LL104", "LL105", "LL201", "LL202", "LL301", "LL302", "LL401"),
    *("LL402", "LL501", "LL502", "LL603"),
)
CHANGE = "a gradient at the parameters named"
REMEDIES = (Remedy("reconnect", "look for .detach(), .data, no_grad or a numpy detour between them and the loss"),)
REFERENCE = "chain rule: no path, no gradient"


def look(seen: Evidence, limits: Limits) -> Sign | None:
    share, names = seen.number("start/unreached"), seen.named("unreached")
    if not share >= limits["share"]:
        return None
    return Sign(
        severity="error" if share >= limits["error"] else "warning",
        strength=share,
        cause="No gradient comes to parameters that are to be trained: the way from the loss to them is cut.",
        evidence=(f"{share:.0%} of the parameter values get no gradient: {names}",),
    )
