"""Verdicts: bounds, what is not finite, and what cannot be built."""

import math
import subprocess
import sys

import pytest

from leadline.analysis.verdict import Verdict, at_least, at_most, judge, undecided


@pytest.mark.parametrize(("measured", "outcome"), [(1.0, "holds"), (2.0, "holds"), (2.1, "fails")])
def test_at_most(measured: float, outcome: str) -> None:
    assert at_most(measured, 2.0, seeds=3) == Verdict(outcome=outcome, measured=measured, seeds=3)  # type: ignore[arg-type]


@pytest.mark.parametrize(("measured", "outcome"), [(1.0, "fails"), (2.0, "holds"), (2.1, "holds")])
def test_at_least(measured: float, outcome: str) -> None:
    assert at_least(measured, 2.0).outcome == outcome


@pytest.mark.parametrize("measured", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_undecided(measured: float) -> None:
    for verdict in (judge(True, measured), at_most(measured, 1.0), at_least(measured, 1.0)):
        assert verdict.outcome == "undecided" and str(measured) in verdict.note
    with pytest.raises(ValueError, match="undecided"):
        Verdict(outcome="fails", measured=measured)


def test_undecided_says_why() -> None:
    assert str(undecided("one seed only", measured=0.3)) == "undecided (0.3): one seed only"


def test_needs_no_torch() -> None:
    code = "import sys, leadline.analysis.verdict; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
