"""Slopes against numpy's fit, and Student's quantile against its density summed up."""

import math

import numpy as np
import pytest

from leadline.analysis.slopes import Slope, log_slope, slope, t_quantile


def share_within(t: float, free: int) -> float:
    """The share of Student's t between -t and t, by the midpoint rule."""
    edges = np.linspace(0, t, 200_001)
    middles = (edges[1:] + edges[:-1]) / 2
    density = (1 + middles**2 / free) ** (-(free + 1) / 2)
    scale = math.exp(math.lgamma((free + 1) / 2) - math.lgamma(free / 2)) / math.sqrt(free * math.pi)
    return float(2 * scale * density.sum() * (edges[1] - edges[0]))


@pytest.mark.parametrize("free", [1, 2, 5, 12, 13, 30, 400])
def test_quantile_leaves_out_five_percent(free: int) -> None:
    assert share_within(t_quantile(free), free) == pytest.approx(0.95, abs=2e-5)


@pytest.mark.parametrize("count", [3, 8, 40])
def test_slope_and_its_error_are_those_of_a_fit(count: int) -> None:
    draw = np.random.default_rng(count)
    x, y = draw.normal(size=(2, count))
    fit, covariance = np.polyfit(x, y, 1, cov=True)
    found = slope(x, y)
    assert found.value == pytest.approx(fit[0])
    assert found.high - found.value == pytest.approx(t_quantile(count - 2) * math.sqrt(covariance[0, 0]))
    assert found.value - found.low == pytest.approx(found.high - found.value)


def test_points_that_are_no_numbers_do_not_count() -> None:
    assert slope([0, 1, 2, 3], [0, 2, math.nan, 6]) == slope([0, 1, 3], [0, 2, 6])
    assert log_slope([1, 2, 4, 8], [1, 4, 16, 0]).value == pytest.approx(2)


def test_too_few_points_decide_nothing() -> None:
    assert math.isnan(slope([1, 1], [0, 5]).value)
    two = slope([0, 1], [0, 5])
    assert two.value == 5 and math.isnan(two.low) and 5.0 not in two


def test_an_interval_contains_what_is_between_its_ends() -> None:
    assert 1.0 in Slope(1.1, 0.9, 1.3) and 1.4 not in Slope(1.1, 0.9, 1.3)
