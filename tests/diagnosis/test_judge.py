"""From losses and signs to a verdict and one root cause."""

import math
from pathlib import Path

import numpy as np
import pytest
from diagnosis.plain import evidence

from leadline.core.errors import LeadlineError
from leadline.diagnosis.course import course
from leadline.diagnosis.judge import judge
from leadline.diagnosis.thresholds import thresholds

LEARNS = list(np.linspace(2.0, 0.2, 30))
CREEPS = list(np.linspace(2.0, 1.7, 60))
FLAT = [2.0] * 60
COLLAPSE = {"collinearity/cosine": [0.4, 0.6, 0.8, 0.9, 0.95, 0.99, 0.999, 1.0, 1.0]}


def test_what_learns_is_healthy_and_gets_only_notes() -> None:
    found = judge(evidence(COLLAPSE, losses={"": LEARNS}))
    assert found.verdict == "healthy" and found.root is None and found.exit_code == 0
    assert [finding.severity for finding in found.findings] == ["note"]


@pytest.mark.parametrize(("losses", "verdict"), [(CREEPS, "trains slowly"), (FLAT, "will not train")])
def test_losses_decide(losses: list[float], verdict: str) -> None:
    assert judge(evidence({}, losses={"": losses})).verdict == verdict


def test_a_loss_that_is_no_number_will_not_train() -> None:
    assert judge(evidence({}, losses={"": [2.0, 50.0, math.nan]})).verdict == "will not train"


def test_too_few_steps_leave_it_open_unless_a_sign_is_clear() -> None:
    assert judge(evidence({}, losses={"": [2.0, 2.0]})).verdict == "undecided"
    assert judge(evidence(COLLAPSE, losses={"": [2.0, 2.0]})).verdict == "will not train"


def test_what_was_learning_when_the_budget_ended_is_no_alarm_whatever_the_signs() -> None:
    found = judge(evidence(COLLAPSE, losses={"": [2.0, 1.8, 1.4, 1.1, 0.8]}))
    assert found.verdict == "healthy" and found.root is None and "was learning" in found.reason


def test_how_well_it_trains_follows_the_verdict() -> None:
    falling = [1e3 * 0.9**k for k in range(60)]
    losses = [LEARNS, CREEPS, falling, FLAT, [2.0, math.nan]]
    learned, slow, from_high, never, lost = (judge(evidence({}, losses={"": course})).trainability for course in losses)
    assert learned > 1 > max(slow, from_high) and min(slow, from_high) > 0 > never > lost


def test_consequences_are_folded_under_one_root() -> None:
    readings = COLLAPSE | {"gradient_norm_ratio/ratio": [4.0] * 8, "activation_range/max": [1.0] * 9}
    found = judge(evidence(readings, losses={"": FLAT, "one-batch": LEARNS}))
    assert found.root is not None and found.root.id == "LL101"
    assert {folded.id for folded in found.root.consequences} == {"LL102", "LL603"}
    assert sum(finding.severity != "note" for finding in found.findings) == 1


def test_a_quarter_of_the_rate_that_suffices_is_the_root_beside_a_mere_warning() -> None:
    mild = {"gradient_norm_ratio/ratio": [0.7] * 8}
    assert judge(evidence(mild, losses={"": FLAT, "slower": LEARNS})).root.id == "LL501"  # type: ignore[union-attr]
    strong = {"gradient_norm_ratio/ratio": [0.3] * 8}
    assert judge(evidence(strong, losses={"": FLAT, "slower": LEARNS})).root.id == "LL103"  # type: ignore[union-attr]


def test_select_and_ignore_take_beginnings_of_ids() -> None:
    case = evidence(COLLAPSE | {"start/frozen": 1.0}, losses={"": FLAT})
    assert [f.id for f in judge(case, select=["LL1"]).findings] == ["LL101"]
    assert [f.id for f in judge(case, ignore=["LL6"]).findings] == ["LL101"]
    with pytest.raises(LeadlineError, match="unknown finding 'XX1'"):
        judge(case, select=["XX1"])


def test_thresholds_are_overridden_in_part(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("representation_collapse: {collinear: 1.5}")
    limits = thresholds(path)
    assert limits["representation_collapse"]["collinear"] == 1.5
    assert limits["representation_collapse"]["risen"] == thresholds()["representation_collapse"]["risen"]
    assert not judge(evidence(COLLAPSE, losses={"": FLAT}), limits=limits).findings


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("representation_colapse: {collinear: 1}", "unknown rule"),
        ("representation_collapse: {colinear: 1}", "unknown limit of representation_collapse 'colinear'"),
        ("representation_collapse: {collinear: high}", "expected a number"),
        ("- 1", "expected `rule: "),
        ("a: {", "not YAML"),
    ],
)
def test_thresholds_that_cannot_be_meant(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(LeadlineError, match=said):
        thresholds(path)


def test_forecast_follows_the_later_half() -> None:
    falling = course(list(np.linspace(2.0, 1.0, 50)), chance=2.0)
    assert falling.forecast(60) < falling.level
    rising = course([1.0] * 20 + [5.0] * 20, chance=2.0)
    assert rising.forecast(200) == rising.lowest == pytest.approx(0.5)
