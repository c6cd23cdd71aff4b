"""Watch runs in the browser while they train: a local, read-only page."""

import os
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, UseAppendAction

from leadline.cli._words import parse, print_json
from leadline.core.errors import UsageError


@dataclass(frozen=True)
class Watch:
    """Watch runs in the browser while they train: a local, read-only page.

    Shows the list of all runs in a folder and, of those you choose, the page of the report, growing with the run.
    Listens to this machine only, unless --host says otherwise; then the address that is printed carries a token.
    """

    runs: Positional[Path] = Path("runs")
    """the folder of the run folders, or one run folder"""
    port: int | None = None
    """8765, or any that is free if that is taken; 0 for any"""
    host: str = "127.0.0.1"
    """the address to listen on; 0.0.0.0 for all of them"""
    token: bool = False
    """ask for a token on this machine as well, where others work on it too"""
    allow_host: Annotated[tuple[str, ...], UseAppendAction] = ()
    """another name that browsers may call this server by, repeatable"""
    json: bool = False
    """the address as JSON"""


def run(words: Sequence[str]) -> int:
    options = parse(Watch, words, verb="watch")
    try:
        from leadline.live.serve import Place, catalogue, place, serve
    except ModuleNotFoundError as error:
        raise UsageError(f"watch needs {error.name}; install it with: pip install 'leadline[live]'") from None
    runs = catalogue(options.runs)
    at: Place = place(options.host, options.port, token=options.token, allow=options.allow_host)

    def ready() -> None:
        if options.json:
            print_json({"url": at.url, "runs": str(options.runs.resolve())})
        else:
            sys.stdout.write(f"{options.runs} is shown at {at.url}\n")
            sys.stderr.write(f"{forwarding(at.port)}Ctrl-C ends it\n")
        sys.stdout.flush()

    serve(runs, at, ready=ready)
    return 0


def forwarding(port: int) -> str:
    """How to get at it from another machine, for those who came here through ssh."""
    if "SSH_CONNECTION" not in os.environ:
        return ""
    return f"from your own machine: ssh -N -L {port}:127.0.0.1:{port} {socket.gethostname()}\n"
