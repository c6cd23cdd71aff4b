"""The evidence of all cases of one part in one small file of the repository, so that it is judged again in seconds.

A line is a case: what of its run folder the rules go by, with five digits, and what the naive baselines go by.
"""

import gzip
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cases import cases

from leadline.diagnosis.evidence import Evidence
from leadline.diagnosis.finding import Diagnosis
from leadline.diagnosis.judge import judge
from leadline.store.reader import read, to_table

Row = Mapping[str, str]

HERE = Path(__file__).parent
BASELINES = "baselines.json"
WHOLE = ("loss", "rehearsal", "start")
"""Probes of which everything is kept."""
METRICS = (
    "gradient_norm_ratio/ratio",
    "gradient_norm_ratio/norm",
    "activation_range/min",
    "activation_range/max",
    "collinearity/cosine",
    "hidden_condition/dead",
    "hidden_condition/rank/channel",
    "feature_predictability/predictable",
    "weight_condition/kappa",
)
BLOCK = ("name", "kind", "lengths", "in_shape", "out_shape")


def file_of(part: str) -> Path:
    return HERE / f"{part}.jsonl.gz"


def pack(part: str, cache: Path) -> None:
    """Writes the file of a part from the run folders of its cases."""
    lines = [json.dumps(_case(cache / case.id), sort_keys=True) for case in cases() if case.part == part]
    file_of(part).write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))


def _case(folder: Path) -> dict[str, Any]:
    run = read(folder)
    lines = map(json.loads, run.folder.readings.read_text().splitlines())
    blocks = [{key: block[key] for key in BLOCK} for block in run.record["anatomy"]["blocks"]]
    return {
        "id": folder.name,
        "record": {"anatomy": {"blocks": blocks}, "connection": run.record["connection"]},
        "readings": [
            {**line, "value": _short(line["value"])}
            for line in lines
            if line["probe"] in WHOLE or f"{line['probe']}/{line['name']}" in METRICS
        ],
        "baselines": json.loads((folder / BASELINES).read_text()),
    }


def _short(value: Any) -> Any:
    if isinstance(value, list):
        return [_short(item) for item in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


def judged(part: str) -> dict[str, Row]:
    """What the rules, as they are now, say of every case of the part."""
    return {row["id"]: row for row in _rows(part)}


def _rows(part: str) -> Iterator[Row]:
    for line in gzip.decompress(file_of(part).read_bytes()).splitlines():
        case = json.loads(line)
        said = _words(judge(Evidence(case["record"], to_table(case["readings"]))))
        yield {key: str(value) for key, value in {"id": case["id"], **said, **case["baselines"]}.items()}


def _words(found: Diagnosis) -> dict[str, object]:
    return {
        "verdict": found.verdict,
        "confidence": found.confidence,
        "trainability": found.trainability,
        "root": found.root.id if found.root else "",
        "findings": " ".join(finding.id for finding in found.findings),
    }
