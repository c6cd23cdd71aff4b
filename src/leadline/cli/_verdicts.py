"""How verdicts look on a terminal; piped, they are plain text."""

from collections.abc import Mapping

STYLES: Mapping[str, str] = {
    "healthy": "bold green",
    "trains slowly": "bold yellow",
    "will not train": "bold red",
    "undecided": "bold",
    "depth-invariant": "bold green",
    "growing": "bold yellow",
    "exploding": "bold red",
}
