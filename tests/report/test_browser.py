"""The report in a real Chromium, opened from disk with no network: what it says, draws, hands out, and to whom."""

import csv
import io
import math
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import written
from chromium import PHONE, Shown, launched, opened
from playwright.sync_api import Browser, expect

from leadline.report import write
from leadline.store.reader import read

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as found:
        yield found


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    root = tmp_path_factory.mktemp("runs")
    return [written.judged(written.run(root / "sick", losses=1.0)), written.run(root / "well")]


@pytest.fixture(scope="module")
def sick(browser: Browser, folders: list[Path]) -> Iterator[Shown]:
    with opened(browser, write(folders[0].parent / "sick.html", folders[:1]), offline=True) as shown:
        yield shown


@pytest.fixture(scope="module")
def both(browser: Browser, folders: list[Path]) -> Iterator[Shown]:
    with opened(browser, write(folders[0].parent / "both.html", folders), offline=True) as shown:
        yield shown


def to_step(shown: Shown, index: int) -> None:
    """As a hand on the slider does it."""
    shown.page.locator(".steps input").evaluate(
        "(slider, value) => { slider.value = value; slider.dispatchEvent(new Event('input')); }", index
    )
    shown.settle()


def test_nothing_is_asked_for_but_the_file_itself(sick: Shown) -> None:
    sick.settle()
    assert len(sick.asked) == 1 and sick.asked[0].startswith("file://")
    blocked = "fetch('https://example.org/').then(() => 'answered', () => 'refused')"
    with pytest.raises(AssertionError):  # the policy refuses it before the network could, and says so
        assert sick.call(blocked) == "refused"
        assert sick.complaints == []
    assert any("Content Security Policy" in one for one in sick.complaints)
    sick.complaints.clear()


def test_it_opens_with_the_verdict_and_the_root_cause_in_words(sick: Shown) -> None:
    first = sick.page.locator("main section section").first
    assert first.get_attribute("aria-label") == "Verdict on sick"
    assert sick.text("h1").endswith("Will not train")
    said = first.inner_text()
    for words in (
        "It does not learn",
        "The gradient explodes with depth",
        "Most in",
        "add-identity-skips",
        "a theorem",
    ):
        assert words in said
    box = first.bounding_box()
    assert box is not None and box["y"] < 120


def test_every_panel_draws_the_numbers_that_were_recorded(sick: Shown) -> None:
    to_step(sick, len(written.STEPS) - 1)
    last = written.STEPS[-1]
    for title, axis, name in (
        ("Gradient-norm ratio", "block", "ratio"),
        ("Norm budget of Corollary 1", "block", "deviation"),
        ("Condition of the weights", "layer", "kappa"),
        ("Rank of the representations", "boundary", "rank/batch"),
    ):
        expected = [written.value(name, last, place) for place in range(written.places(axis))]
        assert sick.drawn(title)[0] == pytest.approx(expected, rel=1e-5), title
    allowed = [written.value("delta", last, place) for place in range(written.places("block"))]
    assert sick.drawn("Norm budget of Corollary 1")[2] == pytest.approx(allowed, rel=1e-5)
    assert {"Activation range", "Gradient range"} <= set(sick.page.locator("figure.chart h3").all_inner_texts())


def test_infinite_numbers_are_shown_as_infinite_and_transitions_are_marked(sick: Shown) -> None:
    title = "Condition of the representations"
    to_step(sick, len(written.STEPS) - 1)
    line, marks = sick.drawn(title)
    assert line[2:] == [None] * (written.places("boundary") - 2)
    assert len(marks) == written.places("boundary") - 2
    chart = sick.page.locator(sick.chart(title))
    assert "∞" in (chart.locator(".annotation").text_content() or "")
    turns = sick.call("() => Leadline.depth.transitions(JSON.parse(document.getElementById('runs').textContent)[0])")
    assert turns and chart.locator(".shapelayer path").count() == len(turns)
    assert sick.page.locator(".strip rect.transition").count() == len(turns)


def test_the_slider_goes_through_the_steps(sick: Shown) -> None:
    slider = sick.page.locator(".steps input")
    for index in (0, 3, 7):
        to_step(sick, index)
        step = written.STEPS[index]
        assert sick.text(".steps output") == f"step {step}"
        assert slider.get_attribute("aria-valuetext") == f"step {step}"
        expected = [written.value("ratio", step, place) for place in range(1, written.places("block"))]
        assert sick.drawn("Gradient-norm ratio")[0][1:] == pytest.approx(expected, rel=1e-5)
    slider.focus()
    sick.page.keyboard.press("ArrowLeft")
    assert sick.text(".steps output") == f"step {written.STEPS[6]}"


def test_hovering_names_module_kind_shortcut_and_shapes(sick: Shown) -> None:
    to_step(sick, len(written.STEPS) - 1)
    sick.see(sick.chart("Gradient-norm ratio"))
    plot = sick.page.locator(f"{sick.chart('Gradient-norm ratio')} .plot")
    at = plot.evaluate(
        "(plot) => { const box = plot.getBoundingClientRect(), x = plot._fullLayout.xaxis, y = plot._fullLayout.yaxis;"
        " return [box.left + x._offset + x.d2p(1), box.top + y._offset + y._length / 2]; }"
    )
    sick.page.mouse.move(*at)
    expect(sick.page.locator(".tip")).to_be_visible()
    tip = sick.text(".tip")
    block = written.record()["anatomy"]["blocks"][0]
    shape = " × ".join(str(size) for size in block["in_shape"][1:])
    for words in (block["name"], "identity skip over 2 layers", f"{shape} → ", "output over input"):
        assert words in tip
    last = written.value("ratio", written.STEPS[-1], 0)
    assert f"{last:.4g}" in tip
    sick.page.mouse.move(2, 2)
    expect(sick.page.locator(".tip")).to_be_hidden()


def test_a_finding_leads_to_the_block_it_speaks_of(sick: Shown) -> None:
    name = written.record()["places"]["block"][1]
    sick.page.locator(".verdict .place", has_text=name).first.click()
    assert sick.page.locator(".strip").get_attribute("aria-valuetext") == name
    assert name in sick.text(".inspector") and "transition" in sick.text(".inspector")
    sick.page.locator(".strip").focus()
    sick.page.keyboard.press("ArrowRight")
    following = written.record()["places"]["block"][2]
    assert sick.page.locator(".strip").get_attribute("aria-valuetext") == following
    sick.page.keyboard.press("Escape")
    assert sick.page.locator(".strip").get_attribute("aria-valuetext") == "none chosen"


def test_maps_curves_spectrum_and_proofs_are_there(sick: Shown) -> None:
    sick.see(sick.chart("Block × step"))
    plot = sick.page.locator(f"{sick.chart('Block × step')} .plot")
    field = plot.evaluate("(plot) => plot.data[0].z.map((row) => [...row])")
    assert len(field) == len(written.STEPS) and len(field[0]) == written.places("block")
    assert field[-1][1] == pytest.approx(math.log10(written.value("ratio", written.STEPS[-1], 1)), rel=1e-4)
    losses = sick.drawn("Loss")
    assert losses[0][-1] == pytest.approx(2.3, rel=1e-5)
    assert losses[1][-1] == pytest.approx(written.value("test/loss", written.STEPS[-1], 0), rel=1e-5)
    assert len(sick.drawn("Generalisation gap")) == 2
    shares = sick.drawn("Density of the eigenvalues")[0]
    assert shares == pytest.approx([(1 + k) / 136 for k in range(16)], rel=1e-5)
    assert "index 0.25" in sick.text(f"{sick.chart('Density of the eigenvalues')} .caption")
    assert sick.drawn("Index: share of negative eigenvalues")[0][-1] == pytest.approx(0.25)
    before, after = sick.drawn("Training before and after")
    assert before[-1] == pytest.approx(2.3) and after[-1] == pytest.approx(2.3 * 0.8**19)
    assert "makes it train" in sick.text('[data-part="remedies"] table')


def test_every_number_can_be_had_as_csv(both: Shown, folders: list[Path]) -> None:
    both.see('[data-part="numbers"]')
    with both.page.expect_download() as waited:
        both.page.get_by_role("button", name="Download all as CSV").click()
    text = Path(waited.value.path()).read_bytes().decode()
    lines = list(csv.DictReader(io.StringIO(text, newline="")))
    kept = {(r["run"], r["step"], r["probe"], r["reading"], r["place"]): r for r in lines}
    count = 0
    for folder in folders:
        for row in read(folder).readings.rows():
            boundary = written.ALONG.get(row["probe"], ("",))[0] == "boundary"
            place = "" if row["block"] < 0 else str(row["block"] + (not boundary))
            line = kept[folder.name, str(row["step"]), row["probe"], row["name"], place]
            assert float(line["value"]) == pytest.approx(row["value"], rel=1e-6, nan_ok=True), line
            assert line["note"] == row["note"]
            count += 1
    assert count == len(lines)


def test_the_table_shows_the_numbers_of_the_step(sick: Shown) -> None:
    to_step(sick, 2)
    sick.see('[data-part="numbers"]')
    sick.page.wait_for_function("() => document.querySelector('.numbers caption')?.textContent.includes('step 8')")
    row = sick.page.locator(".numbers tbody tr").nth(1).inner_text()
    assert f"{written.value('ratio', 8, 1):.4g}" in row and written.record()["places"]["block"][1] in row
    to_step(sick, 0)
    sick.page.wait_for_function("() => document.querySelector('.numbers caption')?.textContent.includes('step 0')")
    assert written.NOTE in (sick.page.locator(".numbers tbody tr").first.text_content() or "")


def test_runs_are_compared_on_the_same_axes_and_switched_off_and_on(both: Shown) -> None:
    assert [one.split("\n")[0] for one in both.page.locator(".verdict").all_inner_texts()] == ["sick", "well"]
    assert len(both.drawn("Gradient-norm ratio")) == 4
    button = both.page.locator(".toggle", has_text="sick")
    assert button.get_attribute("aria-pressed") == "true"
    button.click()
    assert both.page.locator(".toggle", has_text="sick").get_attribute("aria-pressed") == "false"
    assert both.page.evaluate("document.activeElement.dataset.key").startswith("toggle")
    assert len(both.drawn("Gradient-norm ratio")) == 2
    both.page.locator(".toggle", has_text="sick").click()
    assert len(both.drawn("Gradient-norm ratio")) == 4
    assert both.page.locator(".facts-table tr.differ").count() > 0


def test_every_question_mark_explains(sick: Shown) -> None:
    marks = sick.page.locator(".why")
    assert marks.count() > 8
    for k in range(marks.count()):
        if not marks.nth(k).is_visible():
            continue
        label = marks.nth(k).get_attribute("aria-label") or ""
        marks.nth(k).click()
        said = sick.text("dialog")
        assert label.startswith("Explain ") and any(part in said for part in ("Normal", "Limits")), label
        sick.page.keyboard.press("Escape")
        expect(sick.page.locator("dialog")).to_have_count(0)
        assert marks.nth(k).evaluate("(mark) => mark === document.activeElement")


def test_where_the_numbers_come_from(sick: Shown, folders: list[Path]) -> None:
    said = sick.text('[data-part="origin"]')
    for words in ("seed", "resnet-8", "state", "done"):
        assert words in said
    assert read(folders[0]).record["mode"] in said


def test_light_dark_and_paper(browser: Browser, folders: list[Path]) -> None:
    page = write(folders[0].parent / "theme.html", folders[:1])
    back = "() => getComputedStyle(document.body).backgroundColor"
    bright = "() => (getComputedStyle(document.body).backgroundColor.match(/\\d+/g) || []).reduce((a, b) => a + +b, 0)"
    with opened(browser, page, offline=True, color_scheme="dark") as shown:
        shown.settle()
        dark = shown.call(back)
        assert shown.call(bright) < 150
        theme = shown.page.locator("button.theme")
        theme.click()
        assert shown.call(bright) > 600 and shown.text("button.theme") == "Theme: light"
        theme.click()
        assert shown.call(back) == dark
        shown.page.emulate_media(media="print")
        assert not theme.is_visible() and not shown.page.locator(".steps input").is_visible()
        paper = shown.page.pdf(format="A4")
        assert len(re.findall(rb"/Type\s*/Page\b", paper)) >= 2


@pytest.mark.parametrize("width", [320, PHONE["width"], 768])
def test_nothing_is_wider_than_a_phone(browser: Browser, folders: list[Path], width: int) -> None:
    page = write(folders[0].parent / "narrow.html", folders)
    phone = {"viewport": {"width": width, "height": 844}, "is_mobile": True, "has_touch": True}
    with opened(browser, page, offline=True, **phone) as shown:
        shown.settle()
        assert shown.call("document.documentElement.scrollWidth") <= width
        heights = shown.call("[...document.querySelectorAll('button')].map((b) => b.offsetHeight).filter(Boolean)")
        assert min(heights) >= 18


MARKUP = '<img src=x onerror="window.pwned=1"></script><script>window.pwned=1</script>'


def test_names_and_values_are_text_whatever_they_say(browser: Browser, tmp_path: Path) -> None:
    name = "<img src=x onerror=window.pwned=1>"
    folder = written.judged(written.run(tmp_path / name, said=MARKUP), said=MARKUP)
    page = write(tmp_path / "page.html", [folder])
    with opened(browser, page, offline=True) as shown:
        shown.settle()
        for part in ("profile", "map", "learning", "hessian", "remedies", "numbers", "origin"):
            shown.see(f'[data-part="{part}"]')
        for why in shown.page.locator(".why").all():
            if why.is_visible():
                why.click()
                shown.page.keyboard.press("Escape")
                expect(shown.page.locator("dialog")).to_have_count(0)
        shown.page.locator(".strip").focus()
        shown.page.keyboard.press("ArrowRight")
        assert MARKUP in shown.text(".inspector")
        assert name in shown.text(".who") and MARKUP in shown.text(".verdict")
        assert shown.call("window.pwned") is None
        assert shown.page.locator("img").count() == 0
        assert shown.page.locator("script").count() == 5  # data twice, the page's own two, the drawing library
        assert shown.page.title().startswith(name)
