"""The report for those who use keys, a screen reader, or see little contrast: labels, focus, order, contrast."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import written
from chromium import Shown, launched, opened
from playwright.sync_api import Browser, expect

from leadline.report import write

pytestmark = pytest.mark.browser

CONTRAST = Path(__file__).with_name("contrast.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as found:
        yield found


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    folders = [written.judged(written.run(root / "sick", losses=1.0)), written.run(root / "well")]
    return write(root / "both.html", folders)


@pytest.fixture(scope="module")
def shown(browser: Browser, page: Path) -> Iterator[Shown]:
    with opened(browser, page, offline=True) as found:
        drawn_whole(found)
        yield found


def drawn_whole(shown: Shown) -> None:
    shown.settle()
    for part in ("profile", "map", "learning", "hessian", "remedies", "numbers", "origin"):
        shown.see(f'[data-part="{part}"]')


def test_everything_that_can_be_used_has_a_name(shown: Shown) -> None:
    unnamed = shown.call(
        "() => [...document.querySelectorAll('button, select, input, a, [tabindex], [role=slider], [role=img]')]"
        ".filter((e) => !(e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.length))"
        ".map((e) => e.outerHTML)"
    )
    assert unnamed == []
    assert shown.call("document.documentElement.lang") == "en"
    assert shown.call("[...document.querySelectorAll('select')].every((e) => e.getAttribute('aria-label'))")
    assert shown.call("[...document.querySelectorAll('th')].every((e) => e.getAttribute('scope'))")


def test_headings_do_not_skip_and_parts_are_named(shown: Shown) -> None:
    levels: list[int] = shown.call(
        "[...document.querySelectorAll('main :is(h1, h2, h3, h4)')]"
        ".filter((e) => e.offsetWidth).map((e) => +e.tagName[1])"
    )
    assert levels[0] <= 2
    assert all(after - before <= 1 for before, after in pairwise(levels)), levels
    assert shown.call("[...document.querySelectorAll('section')].every((e) => e.getAttribute('aria-label'))")
    assert shown.call("document.querySelectorAll('main').length") == 1
    ids: list[str] = shown.call("[...document.querySelectorAll('[id]')].map((e) => e.id)")
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_contrast_is_enough(browser: Browser, page: Path, theme: Any) -> None:
    with opened(browser, page, offline=True, color_scheme=theme) as found:
        drawn_whole(found)
        texts = found.call(CONTRAST)
        assert len(texts) > 200
        poor = [one for one in texts if one["ratio"] < (3 if one["large"] else 4.5)]
        assert poor == []


def test_lines_of_runs_stand_out_and_differ_by_more_than_colour(shown: Shown) -> None:
    dashes = shown.page.locator(f"{shown.chart('Gradient-norm ratio')} .plot").evaluate(
        "(plot) => plot.data.filter((trace) => trace.mode !== 'markers').map((trace) => trace.line.dash)"
    )
    assert len(dashes) == 2 == len(set(dashes))


def test_keys_reach_everything_and_focus_is_seen(shown: Shown) -> None:
    shown.call("() => (document.activeElement.blur(), scrollTo(0, 0))")
    reached: list[dict[str, Any]] = []
    for _ in range(160):
        shown.page.keyboard.press("Tab")
        here = shown.call(
            "() => { const e = document.activeElement, s = getComputedStyle(e);"
            " return { what: e.className + ' ' + e.tagName, body: e === document.body,"
            " outline: parseFloat(s.outlineWidth) > 0 && s.outlineStyle !== 'none' }; }"
        )
        if here["body"]:
            break
        reached.append(here)
    names = " ".join(one["what"] for one in reached)
    for wanted in ("theme", "why", "toggle", "play", "INPUT", "strip", "plot", "SELECT", "SUMMARY", "scroll"):
        assert wanted in names, wanted
    assert [one["what"] for one in reached if not one["outline"]] == []
    assert shown.call("[...document.querySelectorAll('[tabindex]')].every((e) => e.tabIndex <= 0)")


def test_a_chart_is_read_with_the_arrow_keys(shown: Shown) -> None:
    plot = shown.page.locator(f"{shown.chart('Gradient-norm ratio')} .plot")
    plot.focus()
    shown.settle()
    shown.page.keyboard.press("ArrowRight")
    shown.page.keyboard.press("ArrowRight")
    names = written.record()["places"]["block"]
    assert names[1] in shown.text(".tip")
    assert names[1] in (shown.page.locator('p.unseen[aria-live="polite"]').text_content() or "")
    shown.page.keyboard.press("Escape")
    expect(shown.page.locator(".tip")).to_be_hidden()
    assert "Arrow keys" in (plot.get_attribute("aria-label") or "")


def test_motion_is_left_out_for_those_who_ask(browser: Browser, page: Path) -> None:
    with opened(browser, page, offline=True, reduced_motion="reduce") as found:
        found.settle()
        moving = "[...document.querySelectorAll('button')].some((e) => getComputedStyle(e).transitionDuration !== '0s')"
        assert not found.call(moving)
