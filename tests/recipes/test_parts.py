"""Where runs are missing, a recipe judges and draws those there are."""

import pytest
from recipes.conftest import Smoke

from leadline.analysis.claims import decide
from leadline.recipes import Made, load, select


@pytest.mark.parametrize("part", [slice(0, 1), slice(-1, None)], ids=["first", "last"])
@pytest.mark.parametrize("name", select(["li2016", "chen2021"]))
def test_one_run_is_enough_for_table_verdicts_and_figure(name: str, part: slice, smoke: Smoke) -> None:
    smoke.made(name)
    recipe = load(name)
    units = list(recipe.runs("smoke"))[part]
    table = recipe.table([Made(unit, smoke.out / "runs" / unit.identity) for unit in units])
    assert table.height
    assert all(decide(claim, table, "paper").outcome in ("holds", "fails", "undecided") for claim in recipe.CLAIMS)
    assert recipe.figure(table).axes
