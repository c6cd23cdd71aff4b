"""Bands of blocks, heat maps and figures with two sides show the numbers of their tables, or say there is none."""

import numpy as np
import pytest

from leadline.core.table import Table
from leadline.figures import block_lines, heatmap, series, twin
from leadline.figures.style import blank


def test_blocks_that_are_not_named_are_a_band_from_the_smallest_to_the_largest() -> None:
    ratios = {"a": (1.0, 8.0), "b": (2.0, 2.0), "c": (0.5, np.inf), "d": (4.0, 1.0), "named": (9.0, 9.0)}
    rows = [{"at": at, "block": block, "ratio": pair[at]} for block, pair in ratios.items() for at in (0, 1)]
    _, (panel,) = series.panels(1)
    block_lines.draw(
        panel, Table.from_rows(rows), x="at", y="ratio", by="block", marked={"named": "first", "no": "x"}, others="rest"
    )
    drawn = {line.get_label(): line.get_ydata() for line in panel.get_lines()}
    assert np.asarray(drawn["first"]).tolist() == [9.0, 9.0] and "x" not in drawn
    whole, half = (band.get_paths()[0].vertices for band in panel.collections)
    for at, (low, high) in enumerate([(0.5, 4.0), (1.0, 8.0)]):
        there = whole[whole[:, 0] == at, 1]
        assert (there.min(), there.max()) == (low, high)
    inner = half[half[:, 0] == 0, 1]
    assert (inner.min(), inner.max()) == pytest.approx(tuple(np.quantile([1.0, 2.0, 0.5, 4.0], (0.25, 0.75))))
    assert panel.get_legend_handles_labels()[1] == ["first", "rest"]


def test_a_heat_map_writes_the_mean_of_each_pair_and_a_dash_where_there_is_none() -> None:
    table = Table(c=[1, 1, 2, 2], d=[1, 2, 1, 1], ratio=[0.5, np.nan, 1.0, 3.0])
    _, (panel,) = heatmap.panels(1, cells=2)
    shown = heatmap.draw(panel, table, x="d", y="c", value="ratio", reach=4.0)
    said = {tuple(map(int, text.get_position())): text.get_text() for text in panel.texts}
    assert said == {(0, 0): "0.5", (1, 0): "–", (0, 1): "2", (1, 1): "–"}
    assert shown.get_clim() == (0.25, 4.0)


def test_two_sides_have_their_own_columns_and_one_legend() -> None:
    table = Table(epoch=[2, 1], loss=[0.1, 0.2], error=[10.0, 20.0])
    figure = blank()
    panel, other_panel = figure.subplots(1, 2)
    other = twin.draw(panel, table, x="epoch", left={"loss": "a loss"}, right={"error": "an error"})
    twin.draw(other_panel, table, x="epoch", left={"loss": "not this"}, right={})
    assert np.asarray(panel.get_lines()[0].get_ydata()).tolist() == [0.2, 0.1]
    assert np.asarray(other.get_lines()[0].get_ydata()).tolist() == [20.0, 10.0]
    assert twin.legend(panel)[1] == ["a loss", "an error"]
    twin.label(panel, other, left="loss", right="")
    assert panel.get_ylabel() == "loss" and not other.get_ylabel()
