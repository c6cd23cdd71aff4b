"""Most parameters are frozen: requires_grad is off, so training cannot change them."""

from leadline.diagnosis.evidence import Evidence
from leadline.diagnosis.finding import Remedy
from leadline.diagnosis.rules import Limits, Sign

ID = "LL602"
TITLE = "frozen parameters"
EXPLAINS = (
    *("LL101", "LL102", "LL103", "LL104", "LL105", "LL201", "LL202", "LL301", "LL302", "LL401"),
    *("LL402", "LL501", "LL502", "LL601", "LL603"),
)
CHANGE = "requires_grad on for what is to be trained"
REMEDIES = (Remedy("unfreeze", "call requires_grad_() on the parameters named, or train a head that can do it alone"),)
REFERENCE = "the optimiser moves nothing that has no gradient"


def look(seen: Evidence, limits: Limits) -> Sign | None:
    share, names = seen.number("start/frozen"), seen.named("frozen")
    if not share >= limits["share"]:
        return None
    return Sign(
        severity="error" if share >= limits["error"] else "warning",
        strength=share,
        cause="Most parameters are frozen, and what is left cannot fit the data.",
        evidence=(f"{share:.0%} of the parameter values do not require a gradient: {names}",),
    )
