"""The page beside what a verb has kept."""

from collections.abc import Sequence
from pathlib import Path


def write_page(folder: Path, runs: Sequence[Path]) -> None:
    """Writes report.html of these run folders into `folder`."""
    from leadline.execute.keep import PAGE
    from leadline.report import write

    write(folder / PAGE, runs)
