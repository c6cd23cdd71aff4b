"""Writes the pages of the papers before anything is read, so that `sphinx-build` alone is enough."""

from pathlib import Path
from typing import Any

from leadline.recipes import _pages

DOCS = Path(__file__).parent


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", lambda _app: _pages.write(DOCS / "results", DOCS / "papers"))
    return {"parallel_read_safe": True}
