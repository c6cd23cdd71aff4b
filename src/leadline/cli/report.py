"""Write one self-contained HTML page of runs: verdict, cause, depth profile, curves, every number."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from leadline.cli._words import parse, print_json
from leadline.report import found, write


@dataclass(frozen=True, kw_only=True)
class Report:
    """Write one self-contained HTML page of runs: verdict, cause, depth profile, curves, every number.

    RUN is a run folder, finished, growing or broken off, or a folder of run folders. Several are shown on the same
    axes. The file asks for nothing when it is opened; it can be mailed or kept.
    """

    runs: Positional[tuple[Path, ...]]
    """run folders, or folders of them"""
    out: Annotated[Path, arg(aliases=("-o",))] = Path("report.html")
    """the file to write"""
    json: bool = False
    """what was written as JSON"""


def run(words: Sequence[str]) -> int:
    options = parse(Report, words, verb="report")
    folders = found(options.runs)
    path = write(options.out, folders)
    size = path.stat().st_size
    if options.json:
        print_json({"report": str(path.resolve()), "runs": [str(folder) for folder in folders], "bytes": size})
    else:
        runs = "1 run" if len(folders) == 1 else f"{len(folders)} runs"
        sys.stdout.write(f"{path}: {runs}, {size / 1e6:.1f} MB\n")
    return 0
