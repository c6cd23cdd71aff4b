"""Which run folders somebody means: run folders themselves, and folders that hold them."""

from collections.abc import Iterable
from pathlib import Path

from leadline.core.errors import UnreadableError
from leadline.store.layout import RunFolder, run_folders


def found(places: Iterable[Path]) -> list[Path]:
    """Every run folder among `places` and directly below them, once each; one that is neither is an error."""
    folders: dict[Path, Path] = {}
    for place in places:
        inside = [place] if (place / "run.json").is_file() else [run.path for run in _below(place)]
        if not inside:
            raise UnreadableError(f"{place} holds no run; expected a run folder, or a folder of them")
        folders |= {folder.resolve(): folder for folder in inside}
    return list(folders.values())


def _below(place: Path) -> Iterable[RunFolder]:
    if not place.is_dir():
        what = "is no folder" if place.exists() else "does not exist"
        raise UnreadableError(f"{place} {what}; expected a run folder, or a folder of them")
    return run_folders(place)
