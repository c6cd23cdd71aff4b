"""The live page in a real Chromium: it grows with a run of another process, and outlives what befalls one."""

import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import pytest
import written
from chromium import Shown, launched, opened
from live.served import COMMAND, Served, begin, describe, finish, grow, key, served
from playwright.sync_api import Browser, expect

from leadline.store.layout import RunFolder
from leadline.store.writer import RunWriter, line

pytestmark = pytest.mark.browser

SOON = 20_000
"""Milliseconds that a busy machine may take."""


CONTRAST = (Path(__file__).parents[1] / "report" / "contrast.js").read_text(encoding="utf-8")
FOCUSED = """() => {
  const element = document.activeElement, style = getComputedStyle(element);
  return { what: element.tagName, outline: parseFloat(style.outlineWidth) > 0 && style.outlineStyle !== "none" };
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as found:
        yield found


@contextmanager
def looked(browser: Browser, server: Served, path: str = "/") -> Iterator[Shown]:
    with opened(browser, server.base + path, allow=server.base) as shown:
        yield shown


@contextmanager
def training(runs: Path) -> Iterator["Popen[str]"]:
    """`leadline train` in a process of its own, killed with the block."""
    words = ["train", "resnet-8", "--data", "digits", "--steps", "100000", "--batch-size", "16"]
    words += ["--probes", "gradient_norm_ratio@every:2,weight_norm@every:5", "--out", str(runs)]
    with Popen([*COMMAND, *words], stdout=PIPE, stderr=PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def last_step(shown: Shown) -> int:
    """What the slider says, which follows the newest step."""
    return int("".join(re.findall(r"\d", shown.text(".steps output"))))


def later(shown: Shown, step: int) -> int:
    """Waits until a step after that one is shown."""
    shown.page.wait_for_function(
        "(step) => Number(document.querySelector('.steps output')?.textContent.replace(/\\D/g, '')) > step",
        arg=step,
        timeout=SOON,
    )
    return last_step(shown)


def test_the_page_grows_while_a_run_trains_in_another_process(browser: Browser, tmp_path: Path) -> None:
    with served(tmp_path) as server, looked(browser, server) as shown:
        expect(shown.page.locator("#runs")).to_contain_text("No runs yet", timeout=SOON)
        with training(tmp_path) as process:
            row = shown.page.locator("table.runs tbody tr")
            expect(row).to_have_count(1, timeout=60_000)
            expect(row.locator(".state")).to_have_text("growing", timeout=SOON)
            expect(row.locator(".progress")).to_contain_text("of 100 000", timeout=SOON)
            expect(row.locator(".loss .number")).not_to_be_empty(timeout=SOON)
            expect(row.locator(".verdict")).to_contain_text("so far", timeout=SOON)
            row.locator("a").click()
            shown.page.wait_for_selector(".steps output", timeout=SOON)
            first = later(shown, 2)
            second = later(shown, first + 2)
            assert second > first
            drawn = shown.drawn("Loss")[0]
            assert len(drawn) > 2 and "growing" in shown.text(".who")
            process.kill()
            process.wait(10)
            expect(shown.page.locator(".who")).to_contain_text("dead: its process has gone", timeout=SOON)
        shown.page.locator("a", has_text="All runs").click()
        expect(shown.page.locator("tbody .state")).to_have_text("dead", timeout=SOON)


def test_it_outlives_deletion_restart_and_a_torn_line(browser: Browser, tmp_path: Path) -> None:
    folder = tmp_path / "a"
    finish(tmp_path / "b")
    writer = begin(folder)
    with served(tmp_path) as server, looked(browser, server, "/show?run=a&run=b") as shown:
        shown.page.wait_for_selector(".toggle >> nth=1", timeout=SOON)
        assert last_step(shown) == 40
        with (folder / "readings.jsonl").open("ab", buffering=0) as file:
            whole = line(50, "gradient_norm_ratio", "ratio", [1.0] * written.places("block"))
            file.write(whole[:30])
            shown.page.wait_for_timeout(700)
            assert last_step(shown) == 40
            file.write(whole[30:])
        assert later(shown, 40) == 50
        shutil.rmtree(folder)
        writer.close()
        expect(shown.page.locator("#notices")).to_contain_text("what was read before is still shown", timeout=SOON)
        assert shown.page.locator(".toggle").count() == 2
        with begin(folder, steps=12) as again:
            expect(shown.page.locator("#notices")).not_to_contain_text("still shown", timeout=SOON)
            shown.page.locator(".toggle", has_text="b").click()
            shown.page.wait_for_function(
                "() => document.querySelector('.steps output').textContent === 'step 10'", timeout=SOON
            )
            grow(again, range(12, 31))
            assert later(shown, 20) == 30
        expect(shown.page.locator("#leadline")).to_contain_text("dead", timeout=SOON)
        RunFolder(folder).readings.unlink()
        with RunWriter(folder) as once_more:
            grow(once_more, range(2))
            shown.page.wait_for_function(
                "() => document.querySelector('.steps output').textContent === 'step 0'", timeout=SOON
            )


def test_what_is_looked_at_stays_while_the_run_grows(browser: Browser, tmp_path: Path) -> None:
    with begin(tmp_path / "a") as writer, served(tmp_path) as server, looked(browser, server, "/show?run=a") as shown:
        shown.page.wait_for_selector(".steps output", timeout=SOON)
        slider = shown.page.locator(".steps input")
        slider.focus()
        slider.press("Home")
        assert last_step(shown) == 0
        grow(writer, range(50, 101))
        shown.page.wait_for_function("() => Number(document.querySelector('.steps input').max) === 10", timeout=SOON)
        assert last_step(shown) == 0
        assert shown.call("document.activeElement === document.querySelector('.steps input')")
        slider.press("End")
        assert last_step(shown) == 100
        grow(writer, range(101, 111))
        assert later(shown, 100) == 110


def test_thousands_of_readings_leave_it_answering(browser: Browser, tmp_path: Path) -> None:
    with begin(tmp_path / "a") as writer, served(tmp_path) as server, looked(browser, server, "/show?run=a") as shown:
        shown.page.wait_for_selector(".steps output", timeout=SOON)
        shown.see(shown.chart("Loss"))
        grow(writer, range(50, 20_001))
        assert later(shown, 19_999) == 20_000
        shown.settle()
        assert len(shown.drawn("Loss")[0]) <= 1300


def test_names_are_text_and_lead_nowhere_else(browser: Browser, tmp_path: Path) -> None:
    name = "<img src=x onerror=window.pwned=1>"
    folder = finish(tmp_path / name)
    with served(tmp_path) as server, looked(browser, server) as shown:
        link = shown.page.locator("tbody a")
        expect(link).to_have_text(name, timeout=SOON)
        link.click()
        expect(shown.page.locator(".who")).to_contain_text(name, timeout=SOON)
        assert shown.page.url == f"{server.base}/show?run={key(folder)}"
        assert shown.call("window.pwned") is None and shown.page.locator("img").count() == 0
        assert all(asked.startswith(server.base) for asked in shown.asked)


def test_the_list_is_filtered_sorted_and_compared(browser: Browser, tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        finish(tmp_path / name, steps=5)
    with begin(tmp_path / "d"), served(tmp_path) as server, looked(browser, server) as shown:
        rows = shown.page.locator("tbody tr")
        expect(rows).to_have_count(4, timeout=SOON)
        expect(rows.first.locator("a")).to_have_text("d")
        expect(rows.nth(1).locator(".verdict .why")).to_be_visible(timeout=SOON)
        reason = rows.nth(1).locator(".verdict .why").bounding_box()
        assert reason is not None and reason["width"] > 150
        shown.page.get_by_role("button", name="done 3").click()
        expect(rows).to_have_count(3)
        shown.page.get_by_label("only runs like this").fill("b")
        expect(rows).to_have_count(1)
        shown.page.get_by_label("only runs like this").fill("")
        shown.page.get_by_role("button", name="Run", exact=True).click()
        shown.page.get_by_label("choose a", exact=True).check()
        shown.page.get_by_label("choose c", exact=True).check()
        shown.page.get_by_role("link", name="Show 2 runs together").click()
        shown.page.wait_for_selector(".toggle >> nth=1", timeout=SOON)
        assert shown.page.locator(".toggle").all_inner_texts() == ["a", "c"]


def test_the_page_goes_on_when_the_server_was_started_again(browser: Browser, tmp_path: Path) -> None:
    with begin(tmp_path / "a") as writer, ExitStack() as stack:
        with served(tmp_path) as first:
            shown = stack.enter_context(looked(browser, first, "/show?run=a"))
            shown.page.wait_for_selector(".steps output", timeout=SOON)
        expect(shown.page.locator(".status")).to_have_text("connection lost, trying again …", timeout=SOON)
        grow(writer, range(50, 61))
        with served(tmp_path, "--port", str(first.port)):
            assert later(shown, 40) == 60
            expect(shown.page.locator(".status")).to_have_text("live", timeout=SOON)
        shown.complaints[:] = [one for one in shown.complaints if "net::ERR_" not in one]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_list_can_be_read_and_used_with_keys(browser: Browser, tmp_path: Path, theme: Any) -> None:
    describe(tmp_path / "bad", "{")
    finish(tmp_path / "b", steps=5)
    with begin(tmp_path / "a"), served(tmp_path) as server:
        server.settled(rows=3)
        with opened(browser, server.base, allow=server.base, color_scheme=theme) as shown:
            expect(shown.page.locator("tbody .note")).to_contain_text("run.json is damaged", timeout=SOON)
            expect(shown.page.locator("tbody tr")).to_have_count(3)
            texts = shown.call(CONTRAST)
            assert [one for one in texts if one["ratio"] < (3 if one["large"] else 4.5)] == [] and len(texts) > 20
            reached = []
            for _ in range(30):
                shown.page.keyboard.press("Tab")
                reached.append(shown.call(FOCUSED))
            assert all(one["outline"] for one in reached if one["what"] != "BODY")
            assert {"INPUT", "BUTTON", "A"} <= {one["what"] for one in reached}
            narrow = {"width": 360, "height": 800}
            shown.page.set_viewport_size(narrow)
            assert shown.call("document.documentElement.scrollWidth") <= narrow["width"]
