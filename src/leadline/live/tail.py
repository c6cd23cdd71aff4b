"""The end of a growing file: how far a run is and its last loss, however much stands before."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WINDOWS = (1 << 14, 1 << 20)
"""So many bytes from the end are looked through for a loss, the more only if there is none in the fewer."""
LOSS = b'"name":"train/loss"'


@dataclass(frozen=True)
class End:
    """The last step that was read anything at, and the last training loss, `nan` or `inf` as text; None if unknown."""

    step: int | None = None
    loss: float | str | None = None


def end(path: Path) -> End:
    """What the last whole lines say."""
    found = End()
    for window in WINDOWS:
        try:
            with path.open("rb") as handle:
                size = handle.seek(0, os.SEEK_END)
                handle.seek(max(0, size - window))
                block = handle.read(window)
        except OSError:
            return found
        found = _within(block[block.find(b"\n") + 1 :] if size > window else block)
        if found.loss is not None or size <= window:
            return found
    return found


def _within(block: bytes) -> End:
    """The last reading and the last loss among the whole lines of a block."""
    whole = block[: block.rfind(b"\n") + 1]
    last = _reading(whole, whole.rfind(b"\n", 0, len(whole) - 1) + 1)
    place = whole.rfind(LOSS)
    lost = _reading(whole, whole.rfind(b"\n", 0, place) + 1) if place >= 0 else {}
    steps = [one["step"] for one in (last, lost) if type(one.get("step")) is int and 0 <= one["step"] < 1 << 53]
    value = lost.get("value")
    fine = type(value) in (int, float) or value in ("nan", "inf", "-inf")
    return End(max(steps, default=None), value if fine and lost.get("probe") == "loss" else None)


def _reading(block: bytes, start: int) -> dict[str, Any]:
    try:
        found = json.loads(block[start : block.find(b"\n", start)])
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
