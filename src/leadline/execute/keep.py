"""Keeps a check as a run folder, so that it can be judged again and shown: its readings, and the diagnosis beside."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from leadline.core.errors import UsageError
from leadline.core.plain import plain
from leadline.core.table import Table
from leadline.diagnosis.finding import Diagnosis
from leadline.execute import environment
from leadline.remedies._proof import Proof
from leadline.store.layout import FORMAT, RunFolder, read_json, write_json
from leadline.store.reader import Reading, Run
from leadline.store.writer import RunWriter

KIND = "check"
DIAGNOSIS, PROOFS, PAGE = "diagnosis.json", "proofs.json", "report.html"


def usable(path: Path) -> Path:
    """The folder for a check; one that holds anything else that was recorded is refused."""
    folder = RunFolder(path)
    if folder.run_json.exists():
        if read_json(folder.run_json, what="the description of a run").get("kind") != KIND:
            raise UsageError(f"{path} holds a run that is no check; choose another folder")
    elif path.exists() and not path.is_dir():
        raise UsageError(f"{path} is a file; expected a folder")
    return path


def clear(path: Path) -> Path:
    """The same, a former check in it taken away."""
    folder = RunFolder(usable(path))
    for file in (folder.done_json, folder.readings, folder.run_json, path / DIAGNOSIS, path / PROOFS, path / PAGE):
        file.unlink(missing_ok=True)
    return path


def keep(path: Path, record: Mapping[str, Any], readings: Table, diagnosis: Diagnosis) -> None:
    """Writes what was measured in a check and what was said of it, in place of a former one."""
    with RunWriter(clear(path)) as writer:
        writer.describe(plain({"kind": KIND, "environment": environment.describe(), **record}))
        for line in lines(readings):
            writer.append(line["step"], line["probe"], line["name"], line["value"], notes=line["notes"])
        write_diagnosis(path, diagnosis)
        writer.finish({"outcome": "checked", "verdict": diagnosis.verdict, "seconds": round(diagnosis.seconds, 3)})


def keep_of_run(path: Path, run: Run, diagnosis: Diagnosis) -> None:
    """The same for a run that was judged: beside its own readings, or with a copy of them as they are now."""
    if path.resolve() == run.folder.path.resolve():
        write_diagnosis(path, diagnosis)
    else:
        keep(path, {**run.record, "kind": KIND, "of": run.name}, run.readings, diagnosis)


def write_diagnosis(path: Path, diagnosis: Diagnosis) -> None:
    """Writes diagnosis.json into a run folder."""
    write_json(path / DIAGNOSIS, {"format": FORMAT, **plain(diagnosis.to_json())})


def write_proof(path: Path, proof: Proof) -> None:
    """Writes proofs.json beside the diagnosis."""
    write_json(path / PROOFS, {"format": FORMAT, **plain(proof.to_json())})


def lines(table: Table) -> Iterator[Reading]:
    """The readings of a table one by one, as the store writes them; the reverse of `to_table`."""
    line: Reading = {}
    for row in table.rows():
        if row["block"] > 0:
            line["value"].append(row["value"])
        else:
            if line:
                yield line
            scalar = row["block"] < 0
            line = {key: row[key] for key in ("step", "probe", "name")}
            line |= {"value": row["value"] if scalar else [row["value"]], "notes": {}}
        if row["note"]:
            line["notes"][row["block"]] = row["note"]
    if line:
        yield line
