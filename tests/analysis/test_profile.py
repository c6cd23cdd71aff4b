"""What a profile prints: bounds as bounds, infinite apart from missing, every reason once."""

import math
from typing import Any

from leadline.analysis.profile import Profile

RECORD = {
    "probes": {"condition": {"axis": "layer"}, "fit": {"axis": "layer"}},
    "places": {"layer": ["one", "two", "three", "four", "five"]},
}


def printed(*lines: dict[str, Any]) -> list[str]:
    return str(Profile.of_lines(RECORD, [{"step": 0, "notes": {}, **line} for line in lines])).splitlines()


def test_a_lower_bound_is_printed_as_one() -> None:
    kappa = {"probe": "condition", "name": "kappa", "value": [2.0, 1e6, 3.0]}
    exact, one, every = (
        " ".join(printed({**kappa, "notes": dict.fromkeys(which, "> 2: 1 lost")})[2].split())
        for which in ((), (1,), (0, 1, 2))
    )
    assert exact.endswith(" 2 3 1e+06 3 layers")
    assert one.endswith(" 2 3 > 1e+06 3 layers")
    assert every.endswith(" > 2 > 3 > 1e+06 3 layers")
    row = printed({"probe": "hessian", "name": "ratio10", "value": 9.0, "notes": {-1: "a lower bound; 4 samples"}})
    assert row[2].split() == ["hessian/ratio10", ">", "9"]


def test_every_reason_is_said_once_with_what_it_goes_for() -> None:
    nan = math.nan
    lines = printed(
        {"probe": "condition", "name": "kappa", "value": [math.inf, 2.0, nan], "notes": {0: "singular", 2: "empty"}},
        {"probe": "condition", "name": "mode2", "value": [1.0, nan, nan], "notes": {1: "has 2 modes", 2: "empty"}},
        {"probe": "fit", "name": "risk", "value": [nan] * 5, "notes": {k: f"{9 + k} of 2 samples" for k in range(5)}},
        {"probe": "gap", "name": "gap", "value": nan, "notes": {-1: "no splits"}},
        {"probe": "gap", "name": "error", "value": nan, "notes": {-1: "no splits"}},
    )
    assert [line.strip() for line in lines if ", because " in line] == [
        "infinite: condition/kappa at one, because singular",
        "not measured: condition at three, because empty",
        "not measured: condition/mode2 at two, because has 2 modes",
        "not measured: fit at one, two, three and 2 more, because 9 to 13 of 2 samples",
        "not measured: gap/gap, error, because no splits",
    ]


def test_parameters_that_are_no_layers_are_named_where_layers_are_read() -> None:
    lines = [{"step": 0, "probe": "fit", "name": "risk", "value": [1.0, 2.0], "notes": {}}]
    aside = {"aside": ["a", "b", "c", "d"]}
    assert "not among the layers: a, b, c and 1 more" in str(Profile.of_lines(RECORD | aside, lines))
    elsewhere = {"probes": {"fit": {"axis": "block"}}}
    assert "not among" not in str(Profile.of_lines(RECORD | aside | elsewhere, lines))
