"""The server of the live page: which address, with which token, until it is told to stop."""

import asyncio
import errno
import secrets
import signal
import socket
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

import uvicorn

from leadline.core.errors import UnreadableError, UsageError
from leadline.live.app import app
from leadline.live.catalogue import Catalogue
from leadline.live.guard import LOOPBACK, Door
from leadline.live.hub import Hub

PORT = 8765
LARGEST_REQUEST = 1 << 15
"""Bytes of an address with its headers."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where the server listens, and what opens it."""

    sockets: tuple[socket.socket, ...]
    host: str
    port: int
    door: Door

    @property
    def url(self) -> str:
        """What to open in a browser."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/" + (f"?token={self.door.token}" if self.door.token else "")


def place(host: str, port: int | None, *, token: bool = False, allow: Collection[str] = ()) -> Place:
    """Listens; on the loopback for everybody on this machine, elsewhere, or if asked to, for those with the token."""
    found = listen(host, port)
    here = all(_is_loopback(each.getsockname()[0]) for each in found)
    names = {*LOOPBACK, host.lower(), *(name.lower() for name in allow)}
    if not here:
        names |= {socket.gethostname().lower(), socket.getfqdn().lower()}
    door = Door(names=names, addresses=not here, token=secrets.token_urlsafe(24) if token or not here else "")
    everywhere = host in ("0.0.0.0", "::", "")
    shown = socket.gethostname() if everywhere else host
    return Place(sockets=found, host=shown, port=found[0].getsockname()[1], door=door)


def listen(host: str, port: int | None) -> tuple[socket.socket, ...]:
    """Sockets on every address of `host`; without a port the usual one or, where it is taken, any that is free."""
    try:
        return _bound(host, PORT if port is None else port)
    except OSError as error:
        if port is None and error.errno == errno.EADDRINUSE:
            return _bound(host, 0)
        if error.errno == errno.EADDRINUSE:
            raise UsageError(f"port {port} is in use; --port 0 takes any that is free") from None
        raise UsageError(f"cannot listen on {host}: {error.strerror or error}") from None
    except OverflowError:
        raise UsageError(f"--port {port}: expected a number from 0 to 65535") from None


def _bound(host: str, port: int) -> tuple[socket.socket, ...]:
    addresses = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    found: list[socket.socket] = []
    try:
        for family, kind, protocol, _, address in dict.fromkeys(addresses):
            each = socket.socket(family, kind, protocol)
            found.append(each)
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                each.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            # all addresses of a host get the port that the first one got
            each.bind((address[0], found[0].getsockname()[1] if len(found) > 1 else port, *address[2:]))
    except BaseException:
        for each in found:
            each.close()
        raise
    return tuple(found)


def _is_loopback(address: str) -> bool:
    return ip_address(address.partition("%")[0]).is_loopback


def catalogue(folder: Path) -> Catalogue:
    """The runs in a folder, or the one run that it is."""
    if not folder.is_dir():
        what = "is no folder" if folder.exists() else "does not exist"
        raise UnreadableError(f"{folder} {what}; expected a folder of runs, as leadline train makes one")
    if (folder / "run.json").is_file():
        path = folder.resolve()
        return Catalogue(path.parent, only=path.name)
    return Catalogue(folder)


class Server(uvicorn.Server):
    """Tells the streams that it is over before it waits for them; its signals are handled by who starts it."""

    def __init__(self, config: uvicorn.Config, hub: Hub) -> None:
        super().__init__(config)
        self._hub = hub

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._hub.close()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def serve(runs: Catalogue, at: Place, *, ready: Callable[[], None]) -> None:
    """Answers until Ctrl-C or a TERM; `ready` is called when requests are answered."""
    asyncio.run(_serve(runs, at, ready))


async def _serve(runs: Catalogue, at: Place, ready: Callable[[], None]) -> None:
    hub = Hub(runs)
    config = uvicorn.Config(
        app(hub, door=at.door),
        http="h11",
        ws="none",
        lifespan="on",
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=LARGEST_REQUEST,
        timeout_graceful_shutdown=2,
    )
    server = Server(config, hub)

    def stop() -> None:
        server.should_exit = True

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    serving = asyncio.create_task(server.serve(sockets=list(at.sockets)))
    while not server.started and not serving.done():
        await asyncio.sleep(0.01)
    if not serving.done():
        ready()
    await serving
