"""Where the places of every probe lie along the depth of the network, on one axis counted in blocks.

Block l lies at l, the boundaries on its two sides at l - 1/2 and l + 1/2, its layers evenly between them; layers before
the first block, behind the last and between two lie as many steps of 1/k away as there are k of them.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any


def axes(record: Mapping[str, Any]) -> dict[str, dict[str, list[Any]]]:
    """For block, boundary and layer the names of the places and where they lie."""
    places = record.get("places") or {}
    blocks = (record.get("anatomy") or {}).get("blocks") or ()
    names = {axis: [str(name) for name in places.get(axis) or ()] for axis in ("block", "boundary", "layer")}
    at = {
        "block": [float(k) for k in range(1, len(names["block"]) + 1)],
        "boundary": [k + 0.5 for k in range(len(names["boundary"]))],
        "layer": layers(names["layer"], [block.get("modules") or () for block in blocks]),
    }
    return {axis: {"names": names[axis], "at": at[axis]} for axis in names}


def layers(names: Sequence[str], modules: Sequence[Sequence[str]]) -> list[float]:
    """Where each layer lies; `modules` are the calls that each block is made of."""
    owners = {module: number for number, block in enumerate(modules, 1) for module in reversed(block)}
    inside = [owner(name, owners) for name in names]
    positions: list[float] = []
    start = 0
    while start < len(names):
        end = start
        while end < len(names) and inside[end] == inside[start]:
            end += 1
        low, high = _span(inside, start, end, len(modules))
        count = end - start
        positions += [low + (k + 0.5) / count * (high - low) for k in range(count)]
        start = end
    return positions


def owner(name: str, owners: Mapping[str, int]) -> int:
    """The block (from 1) that a layer's name says it is in; 0 if none."""
    parts = re.split(r"\.", name)
    return next((owners[outer] for k in range(len(parts), 0, -1) if (outer := ".".join(parts[:k])) in owners), 0)


def _span(inside: Sequence[int], start: int, end: int, blocks: int) -> tuple[float, float]:
    if block := inside[start]:
        return block - 0.5, block + 0.5
    before = next((b for b in reversed(inside[:start]) if b), 0)
    if not before:
        return -0.5, 0.5
    after = next((b for b in inside[end:] if b), 0)
    return (before + 0.4, before + 0.6) if after else (blocks + 0.5, blocks + 1.5)
