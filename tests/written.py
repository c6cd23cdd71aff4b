"""Run folders for the pages, written by the store's own writer: every standard reading, some infinite, some missing."""

import copy
import math
from pathlib import Path
from typing import Any

from live.served import record

from leadline.diagnosis.course import Course
from leadline.diagnosis.finding import Diagnosis, Finding, Remedy
from leadline.execute.keep import write_diagnosis, write_proof
from leadline.remedies._proof import Proof, Trial
from leadline.store.writer import RunWriter

STEPS = range(0, 40, 4)
RANGE = ("min", "p01", "p05", "p25", "p50", "p75", "p95", "p99", "max")
ALONG: dict[str, tuple[str, tuple[str, ...]]] = {
    "gradient_norm_ratio": ("block", ("ratio", "norm", "product")),
    "norm_bound": ("block", ("delta", "deviation", "ratio")),
    "weight_condition": ("layer", ("kappa", "kappa_kept", "lost")),
    "hidden_condition": ("boundary", ("kappa/batch", "rank/batch")),
    "activation_range": ("boundary", RANGE),
    "gradient_range": ("layer", RANGE),
    "collinearity": ("boundary", ("cosine",)),
}
SCALARS = {
    "evaluate": ("test/loss", "test/accuracy"),
    "generalisation_gap": ("gap", "gap/training", "error/train", "error/test"),
    "hessian_spectrum": ("bottom", "top", "index", "ratio10", *(f"histogram/{k:02}" for k in range(16))),
}
NOTE = "no gradient came so far"


def value(name: str, step: int, place: int) -> float:
    """Some number that tells where it belongs; of the ranges the larger the later in the list."""
    if name == "kappa/batch" and step >= 20 and place >= 2:
        return math.inf
    if name == "ratio" and place == 0 and step == 0:
        return math.nan
    if name in RANGE:
        return (RANGE.index(name) - 3.5) * (1 + place / 10) * (1 + step / 100)
    if name.startswith("histogram/"):
        return (1 + int(name[-2:])) / 136
    if name == "bottom":
        return -1.0 - step / 10
    if name == "index":
        return 0.25
    if name in ("rank/batch", "lost"):
        return float(64 - place)
    if name == "test/accuracy":
        return 0.1 + step / 100
    return round(0.8 + 0.13 * place + 0.01 * step + 0.017 * len(name), 6)


def places(axis: str) -> int:
    return len(record()["places"][axis])


def run(folder: Path, *, said: str = "", losses: float = 0.97, finished: bool = True) -> Path:
    """A run with all of it; `said` is put into every text that a run has."""
    described = marked(record(), said)
    with RunWriter(folder) as writer:
        writer.describe(described)
        for step in range(STEPS[-1] + 1):
            writer.append(step, "loss", "train/loss", 2.3 * losses**step)
            if step in STEPS:
                profiles(writer, step, said)
        if finished:
            writer.finish({"outcome": f"finished{said}", "steps": STEPS[-1] + 1, "last": {"loss": 0.5}})
    return folder


def profiles(writer: RunWriter, step: int, said: str) -> None:
    for probe, (axis, names) in ALONG.items():
        for name in names:
            values = [value(name, step, place) for place in range(places(axis))]
            notes = {place: f"{NOTE}{said}" for place, one in enumerate(values) if math.isnan(one)}
            writer.append(step, probe, name, values, notes=notes)
    for probe, names in SCALARS.items():
        for name in names:
            writer.append(step, probe, name, value(name, step, 0))
    if said:
        writer.append(step, f"other{said}", f"reading{said}", [1.0, 2.0])


def marked(described: dict[str, Any], said: str) -> dict[str, Any]:
    found = copy.deepcopy(described)
    if said:
        found["config"]["model"] = {"name": f"resnet-8{said}", "args": {f"x{said}": said}}
        found["environment"] = {"host": said, said: said}
        found["places"]["block"] = [f"{name}{said}" for name in found["places"]["block"]]
        for block in found["anatomy"]["blocks"]:
            block |= {"name": f"{block['name']}{said}", "note": said}
    return found


def judged(folder: Path, *, said: str = "") -> Path:
    """The same folder with a diagnosis that names a block, and proofs."""
    block = record()["places"]["block"][1]
    rest = {"change": f"other numbers{said}", "reference": f"a theorem{said}"}
    finding = Finding(
        id="LL103",
        severity="error",
        title=f"the gradient explodes with depth{said}",
        cause=f"Every block multiplies it{said}.",
        evidence=(f"most in {block}", f"slope 0.1{said}"),
        remedies=(Remedy("add-identity-skips", f"hands it on{said}"), Remedy(f"nothing{said}", "")),
        **rest,
    )
    found = Diagnosis(
        verdict="will not train",
        reason=f"it does not learn{said}",
        confidence=0.9,
        trainability=0.1,
        findings=(finding,),
        measured=("gradient_norm_ratio",),
        seconds=1.0,
    )
    before, after = Course((2.3,) * 20, 2.3), Course(tuple(2.3 * 0.8**k for k in range(20)), 2.3)
    trials = (
        Trial(remedy="add-identity-skips", outcome="makes it train", said=f"3 blocks{said}", course=after),
        Trial(remedy=f"nothing{said}", outcome="not tried", said="no time was left"),
    )
    write_diagnosis(folder, found)
    write_proof(folder, Proof(before=before, trials=trials, seed=0, seconds=1.0))
    return folder
