"""The verb: results survive lost runs, failures are told without stopping the rest, nothing is done twice."""

import io
import json
import shutil
import time
from pathlib import Path

import pytest
from rich.console import Console

from leadline.cli.reproduce import Gauge, beside, run
from leadline.core.errors import UsageError
from leadline.core.table import Table
from leadline.recipes import load
from leadline.recipes._reproduce import TRACEBACK, Plan
from leadline.recipes._results import FORMATS

NAME, OTHER = "li2016_fig4", "li2016_fig7"


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("reproduced")
    assert run([NAME, "--scale", "smoke", "--workers", "0", "--out", str(out)]) in (0, 1)
    return out


def words(out: Path, *more: str) -> list[str]:
    return [NAME, "--scale", "smoke", "--workers", "0", "--out", str(out), *more]


def test_losing_half_of_the_runs_changes_nothing(reproduced: Path, tmp_path: Path) -> None:
    out = tmp_path / "copy"
    shutil.copytree(reproduced, out)
    results = out / "smoke" / NAME
    files = ("table.csv", "verdicts.json", "published.csv", "figure.svg")
    before = {name: (results / name).read_bytes() for name in files}
    runs = sorted((out / "runs").iterdir())
    for folder in runs[::2]:
        shutil.rmtree(folder)
    shutil.rmtree(results)
    kept = {path: path.stat().st_mtime_ns for folder in runs[1::2] for path in folder.rglob("*")}
    assert run(words(out)) in (0, 1)
    assert sorted((out / "runs").iterdir()) == runs
    assert before == {name: (results / name).read_bytes() for name in files}
    assert kept == {path: path.stat().st_mtime_ns for path in kept}


def test_with_everything_there_nothing_is_written(reproduced: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stamps = {path: path.stat().st_mtime_ns for path in reproduced.rglob("*")}
    start = time.monotonic()
    run(words(reproduced))
    assert time.monotonic() - start < 10
    assert stamps == {path: path.stat().st_mtime_ns for path in reproduced.rglob("*")}
    said = capsys.readouterr()
    assert "to do" not in said.err and all(claim.text[:20] in said.out for claim in load(NAME).CLAIMS)
    for kind in FORMATS:
        assert (reproduced / "smoke" / NAME / f"figure.{kind}").exists()


def test_a_run_that_fails_twice_is_told_and_the_rest_is_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = Plan.of([NAME], "smoke", tmp_path)
    lost, *others = plan.units
    plan.root.mkdir()
    (plan.root / lost).write_text("a file where a folder should be")
    assert run(words(tmp_path, "--json")) == 1
    said = json.loads(capsys.readouterr().out)
    assert list(said["failed"]) == [lost]
    (result,) = said["results"]
    assert result["missing"] == [lost] and result["runs"] == others
    assert json.loads((tmp_path / "smoke" / NAME / "failed.json").read_text()) == said["failed"]
    (plan.root / lost).unlink()
    run(words(tmp_path, "--json"))
    assert json.loads(capsys.readouterr().out)["results"][0]["missing"] == []
    assert not (tmp_path / "smoke" / NAME / "failed.json").exists()


def test_a_recipe_that_cannot_be_judged_is_told_and_the_others_are(
    reproduced: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "copy"
    shutil.copytree(reproduced, out)
    shutil.rmtree(out / "smoke")
    damaged = next((out / "runs").iterdir()) / "readings.jsonl"
    whole = damaged.read_bytes()
    damaged.write_bytes(whole.replace(b'"ratio"', b'"notit"'))
    assert run([NAME, OTHER, "--scale", "smoke", "--workers", "0", "--out", str(out), "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert list(said["failed"]) == [NAME] and said["failed"][NAME].startswith("it could not be judged: ")
    assert [result["recipe"] for result in said["results"]] == [OTHER]
    assert "Traceback" in (out / "smoke" / NAME / TRACEBACK).read_text()
    damaged.write_bytes(whole)
    run(words(out, "--json"))
    assert json.loads(capsys.readouterr().out)["failed"] == {}
    assert not (out / "smoke" / NAME / TRACEBACK).exists()


def test_a_copy_that_lacks_readings_is_made_again(reproduced: Path, tmp_path: Path) -> None:
    out = tmp_path / "copy"
    shutil.copytree(reproduced, out)
    cut = next((out / "runs").iterdir()) / "readings.jsonl"
    whole = cut.read_bytes()
    cut.write_bytes(whole[: len(whole) // 2])
    assert list(Plan.of([NAME], "smoke", out).left) == [cut.parent.name]
    assert run(words(out)) in (0, 1)
    assert not Plan.of([NAME], "smoke", out).left


def test_the_plan_says_what_is_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words(tmp_path, "--dry-run", "--json")) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["units"] == row["to_do"] == len(list(load(NAME).runs("smoke"))) and row["core_seconds"] > 0
    assert not (tmp_path / "runs").exists()


def test_what_recipes_share_is_planned_once() -> None:
    plan = Plan.of(["zaeemzadeh2018_fig3", "zaeemzadeh2018_fig4"], "smoke", Path("nowhere"))
    first, second = plan.rows()
    assert first["to_do"] == second["shared"] == len(plan.units) and second["to_do"] == second["core_seconds"] == 0
    assert first["core_seconds"] == pytest.approx(sum(plan.seconds.values()), abs=0.1)


def test_the_bar_goes_by_what_runs_cost(tmp_path: Path) -> None:
    plan = Plan.of([NAME], "smoke", tmp_path)
    unit = next(iter(plan.left.values()))
    shown = io.StringIO()
    with Gauge(plan, Console(file=shown, force_terminal=True, width=120)) as gauge:
        gauge.started(unit)
        gauge.advanced(unit, 0.5)
        task = gauge.bar.tasks[0]
        assert task.total == pytest.approx(sum(plan.seconds.values()))
        assert task.completed == pytest.approx(0.5 * plan.seconds[unit.identity])
        assert unit.identity in task.fields["status"]
        gauge.ended(unit, "it broke")
        assert task.completed == pytest.approx(plan.seconds[unit.identity])
        assert task.fields["status"].startswith(f"1 of {len(plan.left)}") and unit.identity not in task.fields["status"]
    assert f"{unit.identity} failed: it broke" in shown.getvalue()


def test_all_published_numbers_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    rows = Table(net=["a[1]"] * 30, published=list(map(float, range(30))), ours=[float("nan")] * 30)
    Console(width=80).print(beside(rows))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 31 and lines[-1].split() == ["a[1]", "29", "-"]


def test_small_results_are_kept_without_the_runs(reproduced: Path, tmp_path: Path) -> None:
    run(words(reproduced, "--keep", str(tmp_path)))
    folder = tmp_path / NAME
    assert sorted(path.name for path in folder.iterdir()) == ["smoke.csv", "smoke.json", "smoke.svg"]
    kept = json.loads((folder / "smoke.json").read_text())
    assert len(kept["ledger"]) == len(load(NAME).CLAIMS) and kept["missing"] == 0
    assert kept["made"]["versions"]["torch"] and kept["made"]["days"]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (["li2016_fig44"], "did you mean 'li2016_fig4'"),
        ([], "no recipe is named"),
        (["all", "--workers", "-1"], "at least 0"),
        (["all", "--scale", "huge"], "--scale"),
    ],
)
def test_what_cannot_be_meant_is_one_line(said: list[str], expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        run(said)
