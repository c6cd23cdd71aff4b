"""Readings in few bytes: what comes out again, against a slow reader of one number at a time, and in the browser."""

import base64
import math
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import written
from chromium import launched, opened
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.page.pack import COARSE, FINE, LADDER, ROOTS, SPECIAL, Course, courses, notes, pack, precision
from leadline.report import write

BITS = (COARSE, LADDER[1][1], FINE)
ANY = st.floats(allow_subnormal=False) | st.sampled_from([0.0, -0.0, 1e-300, 1e300, math.inf, -math.inf, math.nan])


def slowly(block: dict[str, Any]) -> list[list[list[float]]]:
    """Per name, step and place the number, put together again byte by byte."""
    data, count = zlib.decompress(base64.b64decode(block["data"])), block["planes"]
    size = len(data) // count
    width, steps = max(1, block["places"]), len(block["steps"])
    codes: list[int] = []
    for k in range(size):
        folded = sum(data[plane * size + k] << (8 * plane) for plane in range(count))
        change = -(folded + 1) // 2 if folded % 2 else folded // 2
        step, place = k // width % steps, k % width
        before = codes[k - width] if step else codes[k - 1] if place else 0
        codes.append(wrapped(before + change))
    found = [number(code, block) for code in codes]
    rows = [found[start : start + width] for start in range(0, size, width)]
    return [rows[start : start + steps] for start in range(0, len(rows), steps)]


def wrapped(code: int) -> int:
    return (code + (1 << 31)) % (1 << 32) - (1 << 31)


def number(code: int, block: dict[str, Any]) -> float:
    if block["kind"] == "float":
        magnitude = struct.unpack("<d", struct.pack("<Q", abs(code) << (52 - block["bits"])))[0]
        return -float(magnitude) if code < 0 else float(magnitude)
    special = {coded: text for text, coded in SPECIAL.items()}
    if code in special:
        return float(special[code])
    return float((code / ROOTS) ** 2) if block["kind"] == "root" else float(code)


def near(value: float, kept: float, bits: int) -> bool:
    """As exact as is said; what rounds up beyond the largest double is infinite."""
    if math.isnan(value) or math.isnan(kept):
        return math.isnan(value) and math.isnan(kept)
    if math.isinf(kept) and not math.isinf(value):
        return abs(value) > 1.79e308
    return value == kept or abs(value - kept) <= abs(value) * 2.0 ** -(bits + 1)


@settings(deadline=None, max_examples=60)
@given(
    rows=st.integers(1, 4).flatmap(lambda n: st.lists(st.lists(ANY, min_size=n, max_size=n), min_size=1, max_size=5)),
    bits=st.sampled_from(BITS),
)
def test_numbers_come_back_as_exact_as_is_said(rows: list[list[float]], bits: int) -> None:
    course = Course("p", "n", list(range(len(rows))), rows, [{} for _ in rows])
    (block,) = pack([course], bits=bits)
    (found,) = slowly(block)
    for row, kept in zip(rows, found, strict=True):
        assert all(near(value, again, bits) for value, again in zip(row, kept, strict=True)), (row, kept, block["kind"])


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(-(10**8), 10**8) | st.sampled_from([math.inf, math.nan]), min_size=1, max_size=20))
def test_whole_numbers_stay_exact(values: list[float]) -> None:
    course = Course("p", "n", list(range(len(values))), values, [{} for _ in values])
    (block,) = pack([course], bits=COARSE)
    assert block["kind"] == "whole"
    assert np.array_equal(np.ravel(slowly(block)[0]), np.array(values, dtype=float), equal_nan=True)


def test_shares_of_a_histogram_are_kept_coarsely_where_there_are_many() -> None:
    shares = (np.arange(64) / 64) ** 2
    course = Course("p", "histogram/03", [0], [shares.tolist()], [{}])
    (block,) = pack([course], bits=COARSE)
    assert block["kind"] == "root"
    assert np.abs(np.sqrt(slowly(block)[0][0]) - np.sqrt(shares)).max() <= 0.5 / ROOTS + 1e-12


def test_readings_of_the_same_steps_share_a_block_and_others_do_not() -> None:
    lines = [
        {"step": step, "probe": "p", "name": name, "value": [float(step), 0.5]}
        for step in (0, 1, 2)
        for name in ("a", "b", "late")
        if name != "late" or step
    ]
    lines += [{"step": 3, "probe": "p", "name": "a", "value": [1.0, 2.0, 3.5]}]
    blocks = list(pack(courses(lines), bits=FINE))
    assert sorted((block["names"], block["steps"], block["places"]) for block in blocks) == [
        (["a"], [3], 3),
        (["a", "b"], [0, 1, 2], 2),
        (["late"], [1, 2], 2),
    ]


def test_notes_keep_their_places_and_steps() -> None:
    course = Course("p", "n", [0, 1, 2], [[1.0, 2.0]] * 3, [{"-1": "all"}, {"-1": "all"}, {"-1": "all", "1": "one"}])
    assert notes(course) == [{"text": "all", "places": [-1]}, {"text": "one", "places": [1], "at": [2]}]


def test_the_more_numbers_the_fewer_digits() -> None:
    counts = [1, *(most for most, _ in LADDER), 10**8]
    found = [precision(count) for count in counts]
    assert found == sorted(found, reverse=True) and found[0] == FINE and found[-1] == COARSE


@pytest.mark.browser
def test_the_browser_unpacks_the_same_numbers(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    values = random.normal(size=(6, 40)) * 10.0 ** random.integers(-30, 30, size=(6, 40))
    values[1, 2], values[3, 4], values[5, 6] = math.inf, -math.inf, math.nan
    rows = {"a": values, "whole": np.rint(values.clip(-1e6, 1e6)), "histogram/00": np.abs(values.clip(-1, 1))}
    made = [Course("p", name, list(range(6)), each.tolist(), [{}] * 6) for name, each in rows.items()]
    with launched() as browser, opened(browser, write(tmp_path / "a.html", [written.run(tmp_path / "a")])) as shown:
        for bits in BITS:
            for block in pack(made, bits=bits):
                found = shown.call(
                    "async (pack) => { const store = new Leadline.Store({ readings: [pack] }), all = store.list();"
                    " await store.need(all); return all.map((one) => one.rows.map((row) => [...row].map(String))); }",
                    block,
                )
                named = {"Infinity": "inf", "-Infinity": "-inf", "NaN": "nan"}
                told = np.array([[[float(named.get(v, v)) for v in row] for row in one] for one in found])
                assert np.array_equal(told, np.array(slowly(block)), equal_nan=True), (bits, block["kind"])
