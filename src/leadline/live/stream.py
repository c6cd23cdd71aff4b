"""Server-sent events: the list, or some runs, told to one viewer as fast as that one takes it in."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress

from leadline.live.channel import Channel, Mark
from leadline.live.hub import Hub

HEARTBEAT = 15.0
"""Seconds without news after which something is said, so that nobody takes the connection for dead."""
RETRY = b"retry: 1000\n\n"
ALIVE = b": alive\n\n"

_MARK = re.compile(r"(\d{1,18})\.(\d{1,18})")


def event(kind: str, data: bytes, *, mark: str = "") -> bytes:
    """One event; `data` has no line breaks. A browser that connects again says the last mark it got.

    >>> event("gone", b"{}", mark="7.0")
    b'event: gone\\nid: 7.0\\ndata: {}\\n\\n'
    """
    place = f"id: {mark}\n" if mark else ""
    return f"event: {kind}\n{place}data: ".encode() + data + b"\n\n"


def marks(said: str, count: int) -> list[Mark | None]:
    """What a viewer of so many runs has had of each: generation.number with commas between; nothing of the unclear.

    >>> marks("17.3,-,9.0", 3), marks("../..", 1)
    ([(17, 3), None, (9, 0)], [None])
    """
    parts = said.split(",")
    if len(parts) != count:
        return [None] * count
    return [(int(found[1]), int(found[2])) if (found := _MARK.fullmatch(part)) else None for part in parts]


def spelled(had: Sequence[Mark | None]) -> str:
    return ",".join("-" if mark is None else f"{mark[0]}.{mark[1]}" for mark in had)


async def of_list(hub: Hub) -> AsyncIterator[bytes]:
    """The rows of all runs, then those that changed."""
    hub.enter(())
    try:
        yield RETRY
        version = -1
        while not hub.closing:
            beat, state = hub.beat(), hub.catalogue.state
            if state.version > max(version, 0):
                yield event("rows", json.dumps(state.since(version), separators=(",", ":")).encode())
                version = state.version
            elif not await _came(beat):
                yield ALIVE
    finally:
        hub.leave(())


async def of_runs(hub: Hub, words: Sequence[str], had: Sequence[Mark | None]) -> AsyncIterator[bytes]:
    """Descriptions and news of these runs, each from where this viewer has it."""
    channels = hub.enter(words)
    now = list(had)
    try:
        yield RETRY
        while not hub.closing:
            beat, told = hub.beat(), False
            for k, channel in enumerate(channels):
                for said in _news(channel, now, k):
                    told = True
                    yield said
            if not told and not await _came(beat):
                yield ALIVE
    finally:
        hub.leave(words)


def _news(channel: Channel, now: list[Mark | None], k: int) -> list[bytes]:
    """The events of one run; `now` goes on with them."""
    log = channel.log
    if log is None:
        return []
    said = []
    for news in log.since(now[k]):
        now[k] = (log.generation, news.number)
        said.append(event(news.kind, news.data, mark=spelled(now)))
    return said


async def _came(beat: asyncio.Event) -> bool:
    """Was there anything before the heart beats?"""
    with suppress(TimeoutError):
        await asyncio.wait_for(beat.wait(), HEARTBEAT)
    return beat.is_set()
