"""A real Chromium for the tests of pages: only what a test allows is reached, and every complaint is kept."""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

SWITCHES = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"),
)
WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


def executable() -> str:
    """The browser, or the reason why the test is left out."""
    found = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if not found:
        pytest.skip("no Chromium here; apt-get install chromium, or name one in CHROMIUM")
    return found


@contextmanager
def launched() -> Iterator[Browser]:
    """A browser without a window."""
    path = executable()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(SWITCHES))
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Shown:
    """A page in a tab of its own: what it asked for, and everything that it, or the browser about it, complained of."""

    page: Page
    asked: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def text(self, what: str) -> str:
        return self.page.locator(what).first.inner_text()

    def call(self, script: str, argument: Any = None) -> Any:
        return self.page.evaluate(script, argument)

    def see(self, what: str) -> None:
        """Brings it into sight and waits until nothing is left to draw."""
        self.page.locator(what).first.scroll_into_view_if_needed()
        self.settle()

    def settle(self) -> None:
        """Waits until the drawing library is there and everything in sight is drawn."""
        self.call(
            "async () => { const next = () => new Promise((go) => setTimeout(go, 60)); await Leadline.drawing;"
            " await next(); for (let k = 0; k < 3; k++) { await Leadline.drawnOut(); await next(); } }"
        )

    def chart(self, title: str) -> str:
        """How the figure with that heading is found."""
        return f'figure.chart:has(h3:text-is("{title}"))'

    def drawn(self, title: str) -> list[list[float | None]]:
        """The vertical coordinates of each line of a figure, in the numbers of its axis."""
        self.see(self.chart(title))
        found: list[list[float | None]] = self.page.locator(f"{self.chart(title)} .plot").first.evaluate(
            "(plot) => plot.data.map((trace) => Array.from(trace.y, (y) => y ?? null))"
        )
        return found


@contextmanager
def opened(browser: Browser, address: str | Path, *, allow: str = "", **options: Any) -> Iterator[Shown]:
    """A page; requests that do not begin with `allow` are not let through. It must not complain of anything."""
    target = f"file://{address.resolve()}" if isinstance(address, Path) else address
    context = browser.new_context(**{"viewport": WIDE, "accept_downloads": True, **options})
    shown = Shown(context.new_page())
    allowed = allow or target
    elsewhere = re.compile(rf"^(?!{re.escape(allowed)}|data:|blob:)")
    context.route(elsewhere, lambda route: route.abort())
    shown.page.on("request", lambda request: shown.asked.append(request.url))
    shown.page.on("pageerror", lambda error: shown.complaints.append(str(error)))
    shown.page.on(
        "console",
        lambda said: said.type in ("error", "warning") and shown.complaints.append(f"{said.type}: {said.text}"),
    )
    try:
        shown.page.goto(target)
        yield shown
        assert shown.complaints == []
    finally:
        context.close()
