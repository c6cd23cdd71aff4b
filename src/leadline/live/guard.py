"""Guard: who is answered at all. Only GET, only under names of this machine, and with the token where there is one."""

import hmac
import re
from collections.abc import Collection
from dataclasses import dataclass
from hashlib import sha256
from ipaddress import ip_address
from urllib.parse import parse_qsl, quote, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = ("localhost", "127.0.0.1", "::1")
CONTENT = (
    "default-src 'none'; script-src 'self'; style-src 'self' {styles}; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
}
STRICT = CONTENT.replace(" {styles}", "")
DRAWING = CONTENT.format(styles="'unsafe-inline'")
"""For the page of runs: its drawing library writes a style sheet of its own."""

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(?::\d{1,5})?")


@dataclass(frozen=True, kw_only=True)
class Door:
    """Under which names the server answers, whether under any address as well, and the token, if one is asked for.

    A page from elsewhere that has its own name resolved to this machine sends that name in `Host`, and is refused; an
    address cannot be had to mean another machine.
    """

    names: Collection[str] = LOOPBACK
    addresses: bool = False
    token: str = ""

    def knows(self, host: str) -> bool:
        """Is this what `Host` may say?"""
        found = _HOST.fullmatch(host)
        if not found:
            return False
        name = found[1].strip("[]").lower().removesuffix(".")
        return name in self.names or (self.addresses and _is_address(name))

    def opens(self, offered: str) -> bool:
        """Is this the token?"""
        return hmac.compare_digest(offered.encode(), self.token.encode())

    @property
    def cookie(self) -> str:
        """A name of its own for every server: browsers keep cookies of all ports together."""
        return f"leadline-{sha256(self.token.encode()).hexdigest()[:8]}"


class Guard:
    """Answers what is not to be answered, and gives every other answer the headers that keep browsers strict."""

    def __init__(self, app: ASGIApp, *, door: Door) -> None:
        self.app, self.door = app, door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def strictly(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in {**HEADERS, "Content-Security-Policy": STRICT, "Cache-Control": "no-store"}.items():
                    headers.setdefault(name, value)
            await send(message)

        refusal = self._refusal(scope)
        await (refusal or self.app)(scope, receive, strictly)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self.door.knows(hosts[0]):
            return _no(403, "this server is not asked under that name; leadline watch --allow-host NAME lets it")
        if scope["method"] not in ("GET", "HEAD"):
            return _no(405, "read-only", Allow="GET, HEAD")
        if headers.get("sec-fetch-site") in ("cross-site", "same-site") and headers.get("sec-fetch-mode") != "navigate":
            return _no(403, "not for pages from elsewhere")
        return self._unknown(scope, headers) if self.door.token else None

    def _unknown(self, scope: Scope, headers: Headers) -> Response | None:
        """None for one who has the token; whoever has it in the address gets it as a cookie, and an address without."""
        door = self.door
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and door.opens(bearer.strip()):
            return None
        if door.opens(cookie_parser(headers.get("cookie", "")).get(door.cookie, "")):
            return None
        asked = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if any(name == "token" and door.opens(value) for name, value in asked):
            rest = urlencode([(name, value) for name, value in asked if name != "token"])
            # one slash: two would lead to another machine
            place = "/" + quote(scope["path"].lstrip("/"))
            answer = Response(status_code=303, headers={"Location": f"{place}?{rest}" if rest else place})
            answer.set_cookie(door.cookie, door.token, httponly=True, samesite="lax")
            return answer
        said = "this server asks for a token; open the whole address that leadline watch printed"
        return _no(401, said, **{"WWW-Authenticate": "Bearer"})


def _no(status: int, why: str, **headers: str) -> Response:
    return PlainTextResponse(f"{why}\n", status, headers=headers)


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
