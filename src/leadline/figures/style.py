"""How figures look: colours that colour-blind readers can tell apart, legible at column width."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
from cycler import cycler
from matplotlib.figure import Figure

# Okabe and Ito's palette without its yellow, which vanishes on white
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

RC: dict[Any, Any] = {
    "axes.grid": True,
    "axes.prop_cycle": cycler(color=COLOURS),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "font.size": 10,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "svg.hashsalt": "leadline",
}


@contextmanager
def styled() -> Iterator[None]:
    """Figures made inside look like ours; the caller's own settings are left alone."""
    with matplotlib.rc_context(RC):
        yield


def blank(width: float = 7.0, height: float = 3.2) -> Figure:
    """An empty figure that no window system is asked for."""
    return Figure(figsize=(width, height), layout="constrained")


def save(figure: Figure, path: Path, *, dpi: int = 160) -> None:
    """Writes a figure in the format of the file's suffix; the same figure is the same file, whenever it is written."""
    dates = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    with styled():
        figure.savefig(path, dpi=dpi, metadata=dates.get(path.suffix))
