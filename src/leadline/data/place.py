"""Place: the data folder, and the official files in it, found, verified and read."""

import os
from dataclasses import dataclass, field
from pathlib import Path


def data_root() -> Path:
    """`LEADLINE_DATA`, or else the user's cache folder."""
    if chosen := os.environ.get("LEADLINE_DATA"):
        return Path(chosen).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "leadline"


@dataclass(frozen=True)
class Place:
    """Where data files are, and whether missing ones may be fetched."""

    root: Path = field(default_factory=data_root)
    download: bool = True
