"""Curves along the depth break where numbers are infinite, and the strip has bars there and nowhere else."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from leadline.core.table import Table
from leadline.figures import along_depth
from leadline.figures.style import save, styled

COLOURS = {"one": "#0072B2", "other": "#D55E00"}
KAPPA = {"one": [[10.0, np.inf], [1000.0, 100.0], [4.0, 4.0]], "other": [[2.0, 2.0], [3.0, 3.0], [np.inf, np.inf]]}


def table() -> Table:
    """Two networks of three layers, two seeds each."""
    rows = [
        {"net": net, "layer": layer, "seed": seed, "kappa": value}
        for net, layers in KAPPA.items()
        for layer, seeds in enumerate(layers, 1)
        for seed, value in enumerate(seeds)
    ]
    return Table.from_rows(rows)


@pytest.fixture(scope="module")
def drawn() -> tuple[Figure, along_depth.Pair]:
    with styled():
        figure, [[pair]] = along_depth.pairs(1, 1)
        along_depth.draw(pair, table(), x="layer", y="kappa", by="net", colours=COLOURS, faint=table())
        along_depth.legend(figure, COLOURS, notes={"other": "diverged"}, faint="at the start")
    return figure, pair


def test_curves_are_geometric_means_with_gaps_where_any_seed_is_infinite(
    drawn: tuple[Figure, along_depth.Pair],
) -> None:
    _, (_, panel) = drawn
    solid = {str(line.get_color()): line for line in panel.get_lines() if line.get_linestyle() == "-"}
    for net, colour in COLOURS.items():
        wanted = [np.nan if np.isinf(pair).any() else np.sqrt(pair[0] * pair[1]) for pair in KAPPA[net]]
        np.testing.assert_allclose(np.asarray(solid[colour].get_ydata(), dtype=float), wanted)
    assert panel.get_yscale() == "log"
    assert len(panel.get_lines()) == 2 * len(solid), "the faint curves stand beside the others"


def test_strip_has_a_bar_on_a_row_of_its_own_where_a_network_is_infinite(
    drawn: tuple[Figure, along_depth.Pair],
) -> None:
    _, (strip, _) = drawn
    bars = {width: [bar for bar in strip.get_lines() if bar.get_linewidth() == width] for width in (3.0, 1.0)}
    for drawn_bars, shift in zip(bars.values(), (0, 0.35), strict=True):
        found = {str(bar.get_color()): (list(bar.get_xdata()), set(bar.get_ydata())) for bar in drawn_bars}
        assert found == {COLOURS["one"]: ([1, 1], {shift}), COLOURS["other"]: ([3, 3], {1 + shift})}
    assert [label.get_text() for label in strip.get_yticklabels()] == ["infinite"]


def test_a_number_between_infinite_ones_is_seen() -> None:
    with styled():
        _, [[pair]] = along_depth.pairs(1, 1)
        rows = Table(net=["one"] * 3, layer=[1, 2, 3], kappa=[math.inf, 7.0, math.inf])
        along_depth.draw(pair, rows, x="layer", y="kappa", by="net", colours=COLOURS)
    (dots,) = (line for line in pair.panel.get_lines() if line.get_marker() == ".")
    assert (list(dots.get_xdata()), list(dots.get_ydata())) == ([2], [pytest.approx(7.0)])


def test_legend_says_what_became_of_a_network(drawn: tuple[Figure, along_depth.Pair], tmp_path: Path) -> None:
    figure, _ = drawn
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["one", "other (diverged)", "at the start"]
    save(figure, tmp_path / "figure.svg")
    assert (tmp_path / "figure.svg").stat().st_size > 1000


@pytest.mark.parametrize("seed", range(20))
def test_stretches_cover_what_is_marked_and_nothing_else(seed: int) -> None:
    draw = np.random.default_rng(seed)
    x, marked = draw.integers(0, 12, size=30).astype(float), draw.random(30) < 0.3
    found = along_depth.stretches(x, marked)
    places = np.unique(x)
    covered = {place for place in places.tolist() if any(low <= place <= high for low, high in found)}
    assert covered == set(x[marked].tolist())
    assert all(high < low for (_, high), (low, _) in itertools.pairwise(found)), "stretches stand apart"
