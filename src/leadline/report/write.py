"""The report: run folders in, one HTML file out that needs nothing else, and whose policy lets it ask for nothing.

The policy names the digests of its scripts, so that no other can run, whatever a run is called; style is inline, and
the drawing library, deflated and unpacked when the words are there, is named by its digest as well.
"""

import base64
import html
import json
import zlib
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

from leadline import page
from leadline.core.errors import UnreadableError, UsageError
from leadline.store.layout import write_whole

MOST_RUNS = 64
"""More in one file are neither told apart nor opened quickly."""
POLICY = "default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; \
form-action 'none'"


def write(path: str | Path, folders: Sequence[str | Path]) -> Path:
    """Writes the page of these runs, all at once; `path` is the file, its folder is made if there is none."""
    target = Path(path)
    if target.is_dir():
        raise UsageError(f"{target} is a folder; expected the name of a file, such as {target / 'report.html'}")
    if not 1 <= len(folders) <= MOST_RUNS:
        raise UsageError(f"{len(folders)} runs were given; a report shows 1 to {MOST_RUNS}")
    content = document(page.describe_all(folders))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnreadableError(f"cannot write {target}: {error.strerror}") from None
    write_whole(target, content.encode("utf-8", "replace"))
    return target


def document(runs: Sequence[Mapping[str, Any]]) -> str:
    """The page of runs as `page.describe` gives them."""
    drawing = page.plotly().decode()
    shown, begin = inline(page.js()), inline(_file("begin.js"))
    scripts = " ".join(f"'sha256-{digest(text)}'" for text in (shown, begin, drawing))
    return Template(_file("page.html")).substitute(
        policy=POLICY.format(scripts=scripts),
        title=html.escape(title(runs)),
        css=page.css(),
        js=shown,
        runs=embedded(runs),
        plotly=_deflated(),
        begin=begin,
    )


def title(runs: Sequence[Mapping[str, Any]]) -> str:
    """What the window is called."""
    names = [str(run["name"]) for run in runs]
    return f"{names[0] if len(names) == 1 else f'{len(names)} runs'} · Leadline"


def embedded(value: Any) -> str:
    """JSON in which nothing can end the element that it stands in.

    >>> embedded({"name": "</script><img>"})
    '{"name":"\\\\u003c/script>\\\\u003cimg>"}'
    """
    return json.dumps(value, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def inline(script: str) -> str:
    r"""A script in which nothing ends the element that it stands in.

    >>> inline("'</script>'")
    "'<\\/script>'"
    """
    return script.replace("</script", "<\\/script")


def digest(script: str) -> str:
    """As a policy names it."""
    return base64.b64encode(sha256(script.encode()).digest()).decode()


@cache
def _deflated() -> str:
    return base64.b64encode(zlib.compress(page.plotly(), 9)).decode()


def _file(name: str) -> str:
    return (resources.files("leadline.report") / "files" / name).read_text(encoding="utf-8")
