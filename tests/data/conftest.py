"""Folders for data, a web server on the loopback, and what stands in for official files."""

import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest


@dataclass
class Web:
    """A server of files in memory that can be told to misbehave; it notes the Range of every request."""

    files: dict[str, bytes] = field(default_factory=dict)
    ranges: list[str | None] = field(default_factory=list)
    knows_ranges: bool = True
    breaks_after: list[int] = field(default_factory=list)  # bytes before each of the next answers breaks off
    claims: int | None = None  # a length that is not the true one
    address: str = ""


def _handler(web: Web) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            web.ranges.append(wanted)
            body = web.files.get(self.path.lstrip("/"))
            if body is None:
                self.send_error(404)
                return
            start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and web.knows_ranges else 0
            if start and start >= len(body):
                self.send_error(416)
                return
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(web.claims or len(body) - start))
            self.end_headers()
            most = web.breaks_after.pop(0) if web.breaks_after else len(body)
            with suppress(ConnectionError):  # the client may have left
                self.wfile.write(body[start : start + most])

        def log_message(self, format: str, *args: object) -> None: ...

    return Handler


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    served = Web()
    with ThreadingHTTPServer(("127.0.0.1", 0), _handler(served)) as server:
        served.address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield served
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is read from, or written to, the folders of whoever runs the tests."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("LEADLINE_MIRROR", raising=False)
