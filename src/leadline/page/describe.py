"""A run as JSON-able data for the page: what it is, where it ran, its places, its diagnosis, and its readings."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from leadline.core.errors import UnreadableError
from leadline.core.plain import plain
from leadline.page import cards, judged
from leadline.page.depth import axes
from leadline.page.pack import Course, courses, pack, precision
from leadline.store.layout import RunFolder, read_json
from leadline.store.reader import Follower

KEPT = ("digest", "steps", "steps_per_epoch", "parameters", "data_digest", "mode", "dtype", "kind", "of", "start")


def describe(folder: str | Path, *, follower: Follower | None = None, bits: int | None = None) -> dict[str, Any]:
    """Everything the page shows of a run, finished, growing or broken off.

    `follower` is one that has read nothing yet, for a caller that goes on following the run: its next lines are those
    that the page has not. `bits` is how exactly numbers are kept (see `pack`); as their count allows when not given.
    """
    return dress(*load(folder, follower=follower), bits=bits)


def describe_all(folders: Sequence[str | Path]) -> list[dict[str, Any]]:
    """The runs of one page, kept as exactly as all of their numbers together allow; equal names get a number."""
    loaded = [load(folder) for folder in folders]
    bits = precision(sum(count(found) for _, found in loaded))
    names = [told["name"] for told, _ in loaded]
    runs = []
    for k, (told, found) in enumerate(loaded):
        alike = names[:k].count(names[k])
        run = _dressed(Path(folders[k]), told, found, bits)
        runs.append({**run, "id": str(k), "name": f"{names[k]} ({alike + 1})" if alike else names[k]})
    return runs


def _dressed(folder: Path, told: Mapping[str, Any], found: Sequence[Course], bits: int) -> dict[str, Any]:
    try:
        return dress(told, found, bits=bits)
    except Exception as error:  # whatever a damaged description does to those who read it
        raise UnreadableError(f"{folder} cannot be shown: {type(error).__name__}: {error}") from None


def load(folder: str | Path, *, follower: Follower | None = None) -> tuple[dict[str, Any], list[Course]]:
    """What the files of a run say, and its readings."""
    path = Path(folder)
    place = RunFolder(path)
    record = read_json(place.run_json, what="the description of a run")
    state = place.state()
    outcome = read_json(place.done_json, what="the outcome of a run") if state == "done" else None
    follower = follower or Follower(place)
    found = courses(follower.lines())
    notes = list(follower.notes)
    if state != "growing" and (torn := _size(place.readings) - follower.offset) > 0:
        notes.append(f"a torn last line of {torn} bytes was dropped")
    kept = judged.beside(path, judged.DIAGNOSIS, notes)
    told = {"record": record, "state": state, "outcome": outcome, "diagnosis": kept}
    return {
        **told,
        "name": path.resolve().name,
        "proofs": judged.beside(path, judged.PROOFS, notes),
        "notes": notes,
    }, found


def dress(told: Mapping[str, Any], found: Sequence[Course], *, bits: int | None = None) -> dict[str, Any]:
    """The same as the page takes it."""
    record = told["record"]
    where = axes(record)
    diagnosis = judged.linked(told["diagnosis"] or judged.diagnosis(record, found), where)
    config = record.get("config") or {}
    model = config.get("model") or {}
    if bits is None:
        bits = precision(count(found))
    shown: dict[str, Any] = plain(
        {
            "id": told["name"],
            "name": told["name"],
            "state": told["state"],
            "notes": list(told["notes"]),
            "model": model.get("name") or (record.get("anatomy") or {}).get("model") or "model",
            "seed": config.get("seed"),
            "config": config,
            **{key: record[key] for key in KEPT if key in record},
            "environment": record.get("environment") or {},
            "outcome": told["outcome"],
            "anatomy": anatomy(record.get("anatomy") or {}),
            "axes": where,
            "probes": record.get("probes") or {},
            "cards": explain([*(record.get("probes") or {}), *(course.probe for course in found)]),
            "diagnosis": diagnosis,
            "rules": judged.rule_cards(diagnosis),
            "proofs": told["proofs"],
            "bits": bits,
            "readings": list(pack(found, bits=bits)),
        }
    )
    return shown


def explain(probes: Iterable[str]) -> dict[str, Any]:
    """The cards of the probes that are ours."""
    known = ((name, cards.of_probe(name)) for name in dict.fromkeys(probes))
    return {name: card for name, card in known if card}


def count(found: Sequence[Course]) -> int:
    """How many numbers there are."""
    return sum(len(course.steps) * max(1, course.places) for course in found)


def anatomy(found: Mapping[str, Any]) -> dict[str, Any]:
    """The blocks with what the page says of each, and what lies around them."""
    told = {key: found[key] for key in ("model", "stem", "head", "gaps", "not_measured", "parameters") if key in found}
    return {**told, "blocks": [_block(block) for block in found.get("blocks") or ()]}


def _block(block: Mapping[str, Any]) -> dict[str, Any]:
    """Shapes are of one sample: the first axis, of the batch, is left out."""
    before, after = list(block.get("in_shape") or ())[1:], list(block.get("out_shape") or ())[1:]
    lengths = list(block.get("lengths") or ())
    return {
        "name": block.get("name", ""),
        "kind": block.get("kind", ""),
        "lengths": lengths,
        "length": max(lengths, default=0),
        "in": before,
        "out": after,
        "parameters": block.get("parameters"),
        "calls": block.get("calls"),
        "note": block.get("note", ""),
        "transition": block.get("kind") == "transition" or before != after,
    }


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
