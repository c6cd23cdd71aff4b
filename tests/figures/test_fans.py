"""Fans: bands lie within each other, one scale reaches all panels, ticks keep apart."""

import itertools

import numpy as np
import pytest

from leadline.core.table import Table
from leadline.figures import fans
from leadline.figures.style import blank


def table(width: float) -> Table:
    """Ranges of normal numbers of that width at four steps, in no order."""
    draw = np.random.default_rng(0)
    steps = [20, 0, 60, 40]
    values = width * draw.normal(size=(len(steps), 2000))
    ends = {"least": values.min(axis=1), "largest": values.max(axis=1)}
    inner = {name: np.percentile(values, int(name[1:]), axis=1) for name in fans.COLUMNS if name.startswith("p")}
    return Table(ends | inner, step=steps)


def test_bands_are_shaded_from_end_to_end() -> None:
    panel = blank().subplots()
    rows = table(1.0)
    fans.draw(panel, rows, x="step", colour="#0072B2", marked=[-3.0])
    for shade, (low, high, _) in zip(panel.collections, fans.BANDS, strict=True):
        corners = shade.get_paths()[0].vertices
        assert corners[:, 1].min() == rows[low].min() and corners[:, 1].max() == rows[high].max()
    middle, dashed = panel.get_lines()
    assert list(middle.get_xdata()) == [0, 20, 40, 60]
    assert set(dashed.get_ydata()) == {-3.0}


def test_one_scale_is_linear_as_far_as_the_narrowest_reaches() -> None:
    panels = blank().subplots(1, 2)
    tables = [table(1.0), table(1e5)]
    fans.share_scale(panels, tables)
    for panel in panels:
        assert panel.get_yscale() == "symlog"
        assert panel.yaxis.get_transform().linthresh == fans.widest(tables[0])
    assert fans.widest(Table({name: [np.nan] for name in fans.COLUMNS})) == 0


@pytest.mark.parametrize(("narrow", "wide"), [(7.0, 1e6), (3.0, 5.0), (0.02, 0.3), (1e-5, 1e5), (1.0, 1.0)])
def test_ticks_are_few_symmetric_and_apart(narrow: float, wide: float) -> None:
    found = fans.ticks(narrow, wide)
    assert found == sorted(found) and found == [-tick for tick in found[::-1]]
    positive = [tick for tick in found if tick > 0]
    assert 1 <= len(positive) <= fans.MOST_TICKS and positive[-1] <= wide
    assert all(two >= 9.99 * one for one, two in itertools.pairwise(positive))
