"""`leadline verify`: which statements a word means, what it prints, how it ends."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from leadline import theorems
from leadline.cli import main, verify
from leadline.core.errors import UsageError
from leadline.theorems import Case, Result, Statement, select

FAST = "oyedotun2021_lemma"


def names(*words: str) -> list[str]:
    return [name for name, _ in select(words)]


def test_words_are_files_parts_papers_and_globs() -> None:
    both = ["oyedotun2021_lemma2.null_vector", "oyedotun2021_lemma2.singular_values"]
    assert names("oyedotun2021_lemma2") == both
    assert names("oyedotun2021_lemma2.null_vector") == both[:1]
    assert names("*lemma2.null*", "oyedotun2021_lemma2") == both
    assert all(name.startswith("li2016_") for name in names("li2016"))
    assert len(names()) == len(names("*")) == sum(len(names(paper)) for paper in PAPERS)


PAPERS = ("oyedotun2021", "li2016", "zaeemzadeh2018", "chen2021")


@pytest.mark.parametrize(
    ("word", "hint"),
    [("li2016_teorem2", "li2016_theorem2"), ("li2015", "li2016"), ("chen2021_eq13.print", "chen2021_eq13.printed")],
)
def test_unknown_words_offer_the_nearest(word: str, hint: str) -> None:
    with pytest.raises(UsageError, match=f"unknown theorem '{word}'; did you mean '{hint}'"):
        select([word])


def test_json_holds_every_field_and_the_exit_code_tells_of_failures(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", f"{FAST}2", "--seeds", "1", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    keys = {"name", "paper", "place", "statement", "verdict", "worst_error", "tolerance", "case", "seeds", "seconds"}
    assert all(set(each) == keys | {"notes"} for each in found)
    assert [each["verdict"] for each in found] == ["holds", "fails"]
    assert main(["verify", f"{FAST}1", "--seeds", "1", "--json"]) == 0


def test_table_has_one_line_a_statement_and_explains_what_fails(capsys: pytest.CaptureFixture[str]) -> None:
    main(["verify", f"{FAST}[23]", "--seeds", "1"])
    said = capsys.readouterr()
    lines = said.out.splitlines()
    assert [line.split()[:2] for line in lines[1:5]] == [
        ["oyedotun2021_lemma2.null_vector", "holds"],
        ["oyedotun2021_lemma2.singular_values", "fails"],
        ["oyedotun2021_lemma3.injective", "holds"],
        ["oyedotun2021_lemma3.singular_values", "fails"],
    ]
    assert "X = [1 0], V = diag(1, 0)" in said.out and lines[-1] == "2 holds, 2 fails"
    assert said.err == ""


def test_interrupted_it_shows_what_it_has(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    real, calls = theorems.verify, []

    def stop_at_the_second(name: str, statement: Statement, *, seeds: int) -> Result:
        calls.append(name)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(name, statement, seeds=seeds)

    monkeypatch.setattr(theorems, "verify", stop_at_the_second)
    assert main(["verify", f"{FAST}2", "--seeds", "1"]) == 130
    said = capsys.readouterr()
    assert "null_vector" in said.out and "1 holds" in said.out and "interrupted" in said.err


def test_undecided_is_no_failure(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    lost = Statement(place="nowhere", text="NaN", check=lambda _: iter([Case("lost", float("nan"), 0.0)]))
    monkeypatch.setattr(theorems, "select", lambda _: [("li2016_lost", lost)])
    assert main(["verify", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["verdict"] == "undecided" and found["worst_error"] is None


def test_what_is_kept_is_always_all_of_them(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="leave out the names"):
        verify.run([f"{FAST}1", "--keep", str(tmp_path)])
    assert not list(tmp_path.iterdir())


def test_no_seeds_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--seeds", "0"]) == 2
    assert capsys.readouterr().err == "leadline: --seeds 0: expected at least 1\n"


def test_help_does_not_import_torch() -> None:
    code = (
        "import sys; from leadline.cli import main\n"
        "try: main(['verify', '--help'])\n"
        "finally: assert 'torch' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def test_brackets_are_not_markup() -> None:
    assert verify.escaped("[[0, A^T], [A, 0]]") == "\\[\\[0, A^T], \\[A, 0]]"
