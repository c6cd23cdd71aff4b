"""Hub: looks at the list and at the runs that somebody watches, again and again, and wakes those who wait for news."""

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

from leadline.live.catalogue import SCAN, Catalogue
from leadline.live.channel import Channel

TICK = 0.25
"""Seconds between two looks at what grows, while somebody watches."""
IDLE = 2.0
"""Between two looks at the list while nobody does."""
LINGER = 30.0
"""A run nobody watches any more is kept so long, for those who come again."""

Result = TypeVar("Result")


@dataclass
class Watch:
    """A channel, and how many look at it."""

    channel: Channel
    viewers: int = 0
    left: float = 0.0
    task: "asyncio.Task[None] | None" = field(default=None, repr=False)


class Hub:
    """Lives in one event loop; files are read in threads of its own, one for the list and two for the runs."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self.closing = False
        self.viewers = 0
        self._watches: dict[str, Watch] = {}
        self._beat = asyncio.Event()
        self._called = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._listing = ThreadPoolExecutor(1, thread_name_prefix="list")
        self._reading = ThreadPoolExecutor(2, thread_name_prefix="runs")

    def start(self) -> None:
        """Begins to follow the list."""
        self._task = asyncio.get_running_loop().create_task(self._follow_list())

    def close(self) -> None:
        """No news will come any more; those who wait are told."""
        self.closing = True
        self._wake()
        self._called.set()

    async def stop(self) -> None:
        """Waits for the end of what is being read."""
        self.close()
        tasks = [task for task in (self._task, *(watch.task for watch in self._watches.values())) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for pool in (self._listing, self._reading):
            pool.shutdown(wait=True, cancel_futures=True)

    # -- viewers -----------------------------------------------------------------------------------------------------

    def beat(self) -> asyncio.Event:
        """Set at the next news; to be asked for before one looks what there is."""
        return self._beat

    def enter(self, words: Sequence[str]) -> list[Channel]:
        """One more viewer of the list and of these runs."""
        self.viewers += 1
        self._called.set()
        return [self._enter(word) for word in words]

    def leave(self, words: Sequence[str]) -> None:
        """One viewer of them less."""
        self.viewers -= 1
        for word in words:
            watch = self._watches[word]
            watch.viewers -= 1
            watch.left = time.monotonic()

    def _enter(self, word: str) -> Channel:
        watch = self._watches.get(word)
        if watch is None:
            watch = self._watches[word] = Watch(Channel(self.catalogue, word))
            watch.task = asyncio.get_running_loop().create_task(self._follow_run(word, watch))
        watch.viewers += 1
        return watch.channel

    # -- following ---------------------------------------------------------------------------------------------------

    def _wake(self) -> None:
        former, self._beat = self._beat, asyncio.Event()
        former.set()

    async def _follow_list(self) -> None:
        while not self.closing:
            version = self.catalogue.state.version
            await self._in(self._listing, self.catalogue.tick)
            if self.catalogue.state.version != version:
                self._wake()
            await asyncio.sleep(TICK)
            if not self.viewers:
                self._called.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._called.wait(), IDLE)

    async def _follow_run(self, word: str, watch: Watch) -> None:
        looked = -SCAN
        while watch.viewers or time.monotonic() - watch.left < LINGER:
            now = time.monotonic()
            if watch.channel.growing or now - looked >= SCAN:
                looked = now
                if await self._in(self._reading, watch.channel.poll):
                    self._wake()
            await asyncio.sleep(TICK)
        del self._watches[word]

    async def _in(self, pool: ThreadPoolExecutor, work: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(pool, work)
