"""The pages of the papers are made of cards and kept results, and of nothing else."""

from pathlib import Path

from recipes.conftest import Smoke

from leadline import theorems
from leadline.recipes import card, papers, select
from leadline.recipes._keep import keep, keep_statements, kept
from leadline.recipes._pages import PAPERS, main, page, table, write

NAME = "li2016_fig4"


def test_every_paper_has_a_page_with_every_recipe(tmp_path: Path) -> None:
    assert set(papers()) <= set(PAPERS)
    for path in write(tmp_path / "none", tmp_path / "pages"):
        text = path.read_text()
        for name in select([path.stem]):
            assert f"({name})=" in text
        assert "No result is kept of it yet." in text and "::::{container}" not in text


def test_a_kept_result_is_shown_with_figure_ledger_and_versions(smoke: Smoke, tmp_path: Path) -> None:
    result = smoke.made(NAME)
    keep(result, smoke.out / "smoke" / NAME, smoke.out / "runs", tmp_path / "results")
    found = kept(NAME, tmp_path / "results")
    assert found and found.scale == "smoke" and found.figure.exists()
    text = page("li2016", tmp_path / "results", beside=tmp_path / "pages")
    assert f"![{NAME} at smoke scale](../results/{NAME}/smoke.svg)" in text
    for claim, verdict in result.verdicts:
        assert claim.text.replace("_", "\\_") in text and f"**{verdict.outcome}**" in text
    assert card(NAME)["title"].rstrip(".") in text and "torch " in text


def test_statements_are_shown_with_what_they_came_to(tmp_path: Path) -> None:
    rows = [theorems.verify(name, each, seeds=1).to_json() for name, each in theorems.select(["oyedotun2021_lemma2"])]
    kept_at = keep_statements(rows, tmp_path / "results")
    assert kept_at.parent == tmp_path / "results"
    text = page("oyedotun2021", tmp_path / "results", beside=tmp_path / "pages")
    assert "## Statements" in text
    for row in rows:
        assert f"| `{row['name']}` |" in text and f"| {row['verdict']} |" in text
    assert "## Statements" not in page("li2016", tmp_path / "results", beside=tmp_path / "pages")


def test_a_page_that_says_the_same_is_not_touched(tmp_path: Path) -> None:
    first = {path: path.stat().st_mtime_ns for path in write(tmp_path, tmp_path / "pages")}
    assert first == {path: path.stat().st_mtime_ns for path in write(tmp_path, tmp_path / "pages")}
    assert main(["one"]) == 2


def test_signs_in_a_cell_are_not_markup() -> None:
    assert table(["head"], [["a|b_1"], ["`code_1`"]]).splitlines()[2:] == ["| a\\|b\\_1 |", "| `code_1` |"]
