"""The page itself, from the package's files, and the drawing library's script, from its own package."""

import importlib.util
from functools import cache
from importlib import resources
from pathlib import Path

from leadline.core.errors import UsageError

SCRIPTS = (
    *("words", "store", "depth", "look", "chart"),
    *("panels", "curves", "fields", "strip", "verdict", "table", "facts", "sections"),
    "page",
)
"""In this order they make up page.js; each adds to `window.Leadline` what the next ones use."""


@cache
def css() -> str:
    return _text("page.css")


@cache
def js() -> str:
    """All of our scripts as one."""
    return "\n".join(_text(f"{name}.js") for name in SCRIPTS)


def plotly() -> bytes:
    """plotly.min.js as its package has it (MIT licence, which its first lines say)."""
    spec = importlib.util.find_spec("plotly")  # to import it would take a second
    if spec is None or spec.origin is None:
        raise UsageError("the page needs plotly; install it with: pip install plotly")
    return (Path(spec.origin).parent / "package_data" / "plotly.min.js").read_bytes()


def _text(name: str) -> str:
    return (resources.files("leadline.page") / "files" / name).read_text(encoding="utf-8")
