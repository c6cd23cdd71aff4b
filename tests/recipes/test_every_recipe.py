"""Laws that every recipe keeps: a card, valid units at every scale, honest claims, and results from smoke runs."""

import json
import math
import re
import subprocess
import sys

import pytest
from recipes.conftest import Smoke

from leadline.analysis.claims import SCALES, Claim, decide
from leadline.core import plugins
from leadline.core.config import RunConfig, Scale
from leadline.core.study import Study
from leadline.core.table import Table
from leadline.execute.run_study import function
from leadline.recipes import HEADS, PACKAGE, card, load, natural, papers, select
from leadline.recipes._results import FORMATS, read_ledger

NAMES = plugins.names(PACKAGE)
PAPERS = ("oyedotun2021", "li2016", "zaeemzadeh2018", "chen2021")
FAR_TOO_LONG = 60.0
"""Core seconds that a recipe's smoke runs may be planned to take; the clock is the benchmark's business."""


def test_recipes_are_named_by_paper_and_place() -> None:
    assert NAMES and set(papers()) <= set(PAPERS)
    for name in NAMES:
        assert re.fullmatch(rf"({'|'.join(PAPERS)})_[a-z0-9_]+", name), name
    assert select(["all"]) == sorted(NAMES, key=natural)


def test_importing_every_recipe_and_planning_its_runs_needs_no_torch() -> None:
    code = (
        "import sys; from leadline.core import plugins; from leadline.recipes import PACKAGE, load\n"
        "for name in plugins.names(PACKAGE):\n"
        "    recipe = load(name)\n"
        "    [unit.identity for scale in ('smoke', 'laptop', 'paper') for unit in recipe.runs(scale)]\n"
        "    assert 'torch' not in sys.modules, name\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_card_says_what_is_made_how_and_what_differs(name: str) -> None:
    parts = card(name)
    assert set(parts) == {"title", *HEADS}
    assert 10 < len(parts["title"]) <= 120 and parts["title"].endswith(".")
    assert f"leadline reproduce {name}" in parts["Run"]
    for head in ("Reference", "Expect", "Differs"):
        assert len(parts[head]) > 40, head


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", NAMES)
def test_units_are_valid_at_every_scale(name: str, scale: Scale) -> None:
    units = list(load(name).runs(scale))
    assert units
    for unit in units:
        if isinstance(unit, RunConfig):
            assert RunConfig.parse(unit.model_dump(mode="json")).identity == unit.identity
        else:
            assert Study.of(unit.function, **unit.args).identity == unit.identity
            assert callable(function(unit.function)) and 0 < unit.seconds < math.inf
    if scale == "smoke":
        assert sum(unit.seconds for unit in units if isinstance(unit, Study)) < FAR_TOO_LONG


@pytest.mark.parametrize("name", NAMES)
def test_smoke_runs_are_not_those_of_the_paper(name: str) -> None:
    smoke, paper = ({unit.identity for unit in load(name).runs(scale)} for scale in ("smoke", "paper"))
    assert smoke != paper


@pytest.mark.parametrize("name", NAMES)
def test_claims_and_published_numbers_are_well_formed(name: str) -> None:
    recipe = load(name)
    assert recipe.CLAIMS, "a recipe that claims nothing cannot be judged"
    texts = [claim.text for claim in recipe.CLAIMS]
    assert len(set(texts)) == len(texts)
    for claim in recipe.CLAIMS:
        assert isinstance(claim, Claim) and claim.where and claim.text and claim.since in SCALES
        assert decide(claim, Table(), "paper").outcome == "undecided"
    assert {"quantity", "value", "source"} <= set(recipe.PUBLISHED)
    for row in recipe.PUBLISHED.rows():
        assert math.isfinite(row["value"]) and row["quantity"] and row["source"]


@pytest.mark.parametrize("name", NAMES)
def test_smoke_runs_give_table_verdicts_and_figure(name: str, smoke: Smoke) -> None:
    result = smoke.made(name)
    recipe = load(name)
    assert result.table.height and not result.missing
    assert "seed" in result.table, "a table says which seed a row is from"
    assert len(result.verdicts) == len(recipe.CLAIMS)
    for _, verdict in result.verdicts:
        assert verdict.outcome == "undecided" or math.isfinite(verdict.measured)
        assert verdict.note or verdict.outcome == "holds", "what does not hold says why"
    folder = smoke.out / "smoke" / name
    for kind in FORMATS:
        assert (folder / f"figure.{kind}").stat().st_size > 1000
    assert (folder / "table.csv").read_text().count("\n") == result.table.height + 1
    written = read_ledger(folder / "verdicts.json")
    assert written["ledger"] == json.loads(json.dumps(result.ledger()))
    assert result.comparison.height == recipe.PUBLISHED.height
    assert not recipe.PUBLISHED.height or set(recipe.PUBLISHED["quantity"].tolist()) <= set(result.table)
