"""The addresses of the live page: two pages, what they are made of, and the events that fill them."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from hashlib import sha256
from importlib import resources

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from leadline import page
from leadline.live import stream
from leadline.live.guard import DRAWING, Door, Guard
from leadline.live.hub import Hub
from leadline.live.names import text

MOST_RUNS = 16
"""Runs on one page."""
MOST_STREAMS = 100
"""Viewers at a time."""
TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
OWN = ("list.css", "list.js", "show.css", "show.js", "events.js", "icon.svg")
_KEY = re.compile(r"[A-Za-z0-9._~-]{1,800}")


def app(hub: Hub, *, door: Door) -> ASGIApp:
    """Everything that is answered; all of it can be read only."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        hub.start()
        try:
            yield
        finally:
            await hub.stop()

    async def about(_: Request) -> Response:
        root = hub.catalogue.root.resolve()
        return _json({"folder": text(str(root)), "only": hub.catalogue.only is not None})

    async def runs(_: Request) -> Response:
        return _json(hub.catalogue.state.since(-1))

    async def list_events(request: Request) -> Response:
        return _busy(hub) or _events(request, stream.of_list(hub))

    async def run_events(request: Request) -> Response:
        words = list(dict.fromkeys(request.query_params.getlist("run")))
        if not 1 <= len(words) <= MOST_RUNS or not all(map(_KEY.fullmatch, words)):
            return PlainTextResponse(f"expected one to {MOST_RUNS} run=NAME, as the list names them\n", 400)
        said = request.headers.get("last-event-id") or request.query_params.get("after", "")
        return _busy(hub) or _events(request, stream.of_runs(hub, words, stream.marks(said, len(words))))

    routes = [
        Route("/", _list_page, methods=["GET"]),
        Route("/show", _show_page, methods=["GET"]),
        Route("/about.json", about, methods=["GET"]),
        Route("/runs.json", runs, methods=["GET"]),
        Route("/events/list", list_events, methods=["GET"]),
        Route("/events/runs", run_events, methods=["GET"]),
        Route("/assets/{name}", _asset, methods=["GET"]),
    ]
    return Guard(Starlette(routes=routes, lifespan=lifespan), door=door)


async def _list_page(_: Request) -> Response:
    return Response(_file("list.html"), media_type="text/html")


async def _show_page(_: Request) -> Response:
    return Response(_file("show.html"), media_type="text/html", headers={"Content-Security-Policy": DRAWING})


async def _asset(request: Request) -> Response:
    name = request.path_params["name"]
    content = assets().get(name)
    if content is None:
        return PlainTextResponse("there is no such file\n", 404)
    tag = f'"{sha256(content).hexdigest()[:16]}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=TYPES[name.rpartition(".")[2]], headers=headers)


@cache
def assets() -> dict[str, bytes]:
    """Everything the pages ask for, by name; nothing else can be asked for."""
    shared = {"page.css": page.css().encode(), "page.js": page.js().encode(), "plotly.js": page.plotly()}
    return {**{name: _file(name) for name in OWN}, **shared}


def _file(name: str) -> bytes:
    return (resources.files("leadline.live") / "files" / name).read_bytes()


def _json(value: object) -> Response:
    return Response(json.dumps(value, separators=(",", ":")), media_type="application/json")


def _busy(hub: Hub) -> Response | None:
    if hub.viewers < MOST_STREAMS:
        return None
    return PlainTextResponse("too many look at once\n", 503, headers={"Retry-After": "10"})


def _events(request: Request, events: AsyncIterator[bytes]) -> Response:
    headers = {"X-Accel-Buffering": "no"}
    if request.method == "HEAD":
        return Response(media_type="text/event-stream", headers=headers)
    return StreamingResponse(events, media_type="text/event-stream", headers=headers)
