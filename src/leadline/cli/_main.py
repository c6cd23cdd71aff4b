"""The command: one file per verb; a verb is imported only when it is called, so that help needs no torch."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from leadline.core import plugins
from leadline.core.errors import LeadlineError, unknown
from leadline.core.version import VERSION

PACKAGE = "leadline.cli"
PLAIN = {"NO_COLOR": "1", "TERM": "dumb"}
"""What tells printers of tables and bars to use neither colours nor lines that move."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one verb; results go to stdout, progress and errors to stderr, without colours after `--plain`.

    Ends with 0 (fine), 1 (findings, a failed claim, a diverged run), 2 (usage) or 3 (unreadable input).
    """
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        with _plainly("--plain" in words):
            return dispatch([word for word in words if word != "--plain"])
    except LeadlineError as error:
        sys.stderr.write(f"leadline: {error}\n")
        return error.exit_code
    except KeyboardInterrupt:
        sys.stderr.write("leadline: interrupted\n")
        return 130
    except BrokenPipeError:
        # the reader of a pipe has gone; closing stdout again at exit would complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


@contextmanager
def _plainly(wanted: bool) -> Iterator[None]:
    kept = {name: os.environ.get(name) for name in PLAIN}
    os.environ.update(PLAIN if wanted else {})
    try:
        yield
    finally:
        for name, value in kept.items() if wanted else ():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def dispatch(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        sys.stdout.write(overview())
        return 0
    if words[0] == "--version":
        sys.stdout.write(f"leadline {VERSION}\n")
        return 0
    verb = words[0].replace("-", "_")
    if verb not in plugins.names(PACKAGE):
        raise unknown("verb", words[0], verbs(), listing="leadline --help")
    code: int = plugins.module(PACKAGE, verb, kind="verb").run(words[1:])
    return code


def verbs() -> list[str]:
    return [name.replace("_", "-") for name in plugins.names(PACKAGE)]


def overview() -> str:
    """The verbs with their first lines."""
    width = max(map(len, verbs()))
    lines = [f"  {verb:<{width}}  {plugins.card(PACKAGE, verb.replace('-', '_')).splitlines()[0]}" for verb in verbs()]
    head = "leadline sounds the depth of a neural network: where signal, gradient or curvature dies, and why."
    tail = "leadline VERB --help tells more; --json gives results for machines, --plain words without colours."
    return "\n".join([head, "", "usage: leadline VERB ...", "", *lines, "", tail, ""])
