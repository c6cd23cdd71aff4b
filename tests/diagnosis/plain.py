"""Evidence made by hand: a chain of blocks and readings along it, as a run folder would have them."""

from collections.abc import Mapping, Sequence
from typing import Any

from leadline.diagnosis.evidence import Evidence
from leadline.store.reader import to_table


def evidence(
    readings: Mapping[str, float | Sequence[float]],
    *,
    blocks: int = 8,
    losses: Mapping[str, Sequence[float]] | None = None,
    connection: Mapping[str, Sequence[str]] | None = None,
    **block: Any,
) -> Evidence:
    """`probe/name: value`, at step 0; losses by course ("" is the rate asked for)."""
    shape = [4, 8, 5, 5]
    one = {"kind": "plain", "lengths": [], "in_shape": shape, "out_shape": shape, **block}
    chain = [{**one, "name": f"block{k}"} for k in range(blocks)]
    lines: list[dict[str, Any]] = []
    for key, value in {"start/chance": 2.0, "start/loss": 2.0, **readings}.items():
        probe, _, name = key.partition("/")
        lines.append({"step": 0, "probe": probe, "name": name, "value": value})
    for course, values in (losses or {}).items():
        probe, name = ("rehearsal", f"loss/{course}") if course else ("loss", "train/loss")
        lines += [{"step": step, "probe": probe, "name": name, "value": value} for step, value in enumerate(values)]
    return Evidence({"anatomy": {"blocks": chain}, "connection": dict(connection or {})}, to_table(lines))
