"""What grows with depth and how, on curves whose law is known, and how deep it then may get."""

import math

import numpy as np
import pytest

from leadline.analysis.deepest import LIMITS, DepthCheck, Rung, predict
from leadline.analysis.depth import trend

DEPTHS = np.repeat([8.0, 16.0, 32.0, 64.0], 3)


def noisy(decades: np.ndarray) -> np.ndarray:
    return decades + np.random.default_rng(0).normal(scale=0.02, size=len(decades))


@pytest.mark.parametrize(
    ("decades", "verdict"),
    [
        (np.zeros(12), "depth-invariant"),
        (-0.05 * DEPTHS, "depth-invariant"),
        (0.002 * DEPTHS, "depth-invariant"),
        (0.05 * DEPTHS, "exploding"),
        (1e-3 * DEPTHS**2, "exploding"),
        (2 * np.log10(DEPTHS), "growing"),
        (0.5 * np.sqrt(DEPTHS), "growing"),
        (np.where(DEPTHS > 32, math.inf, 0.1), "exploding"),
        (np.where(DEPTHS > 16, math.nan, 0.1 * DEPTHS), "undecided"),
    ],
)
def test_laws_are_told_apart(decades: np.ndarray, verdict: str) -> None:
    assert trend(DEPTHS, noisy(decades)).verdict == verdict


def test_a_rise_that_may_be_chance_is_left_open() -> None:
    jumps = np.random.default_rng(3).normal(scale=3.0, size=12)
    assert trend(DEPTHS, jumps + 0.01 * DEPTHS).verdict == "undecided"


def test_a_line_comes_to_a_level_where_it_says_and_its_interval_covers_it() -> None:
    found = trend(DEPTHS, noisy(0.05 * DEPTHS)).reaches(10.0)
    assert found.value == pytest.approx(200, rel=0.05) and 200 in found and found.low > 150
    power = trend(DEPTHS, noisy(2 * np.log10(DEPTHS))).reaches(6.0)
    assert power.value == pytest.approx(1000, rel=0.2) and 1000 in power


def rungs(*verdicts: str) -> list[Rung]:
    counts = [8, 16, 32, 64]
    return [
        Rung(depth=2 * count + 2, blocks=count, parameters=10, verdict=verdict, reason="")
        for count, verdict in zip(counts, verdicts, strict=True)
    ]


TRAINED = rungs(*["healthy"] * 4)
FLAT = {"gradient": trend(DEPTHS, np.zeros(12))}
STEEP = {"gradient": trend(DEPTHS, LIMITS["gradient"] / 100 * DEPTHS), **FLAT | {"signal": FLAT["gradient"]}}
STEEP["gradient"] = trend(DEPTHS, LIMITS["gradient"] / 100 * DEPTHS)


def test_without_a_trend_no_limit_is_seen() -> None:
    found = predict(TRAINED, FLAT)
    assert found.blocks == math.inf == found.depth and found.low == 64 and "no reading grows" in found.basis


def test_a_trend_is_thought_on_to_its_limit_in_blocks_and_in_the_familys_own_count() -> None:
    found = predict(TRAINED, STEEP)
    assert found.blocks == pytest.approx(100) and found.depth == pytest.approx(202) and "'gradient'" in found.basis


def test_nothing_is_claimed_far_beyond_what_was_measured() -> None:
    slow = {"gradient": trend(DEPTHS, LIMITS["gradient"] / 10_000 * DEPTHS + 0.5 * np.log10(DEPTHS))}
    found = predict(TRAINED, slow)
    assert found.blocks == math.inf and found.low == 640


def test_what_was_trained_stands_above_what_is_thought_on() -> None:
    early = predict(rungs("healthy", "trains slowly", "will not train", "will not train"), STEEP)
    assert (early.blocks, early.low, early.high) == (31, 16, 31) and "did not with 32" in early.basis
    late = predict(TRAINED, {"gradient": trend(DEPTHS, LIMITS["gradient"] / 10 * DEPTHS)})
    assert late.blocks == 64
    never = predict(rungs(*["will not train"] * 4), STEEP)
    assert never.blocks <= 7 and never.low == 0
    assert math.isnan(predict(rungs(*["undecided"] * 4), STEEP).blocks)


def test_it_prints_and_ends_with_one_where_a_depth_does_not_train() -> None:
    def checked(*verdicts: str, trends: dict) -> DepthCheck:
        ladder = rungs(*verdicts)
        return DepthCheck(
            family="f", rungs=tuple(ladder), trends=trends, prediction=predict(ladder, trends), seconds=1.0
        )

    fine = checked(*["healthy"] * 4, trends=FLAT)
    assert fine.exit_code == 0 and "depth-invariant" in str(fine) and "no limit seen up to 64 blocks" in str(fine)
    assert checked(*["healthy"] * 4, trends=STEEP).exit_code == 1
    assert checked("healthy", "healthy", "healthy", "will not train", trends=FLAT).exit_code == 1
