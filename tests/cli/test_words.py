"""The command as it is typed: one clear line for every mistake, and an exit code that says its kind."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from leadline.cli import main
from leadline.cli._main import overview, verbs


def leadline(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-m", "leadline", *words], capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["trian"], 2, "unknown verb 'trian'; did you mean 'train'? (leadline --help)"),
        (["train", "resnt-20"], 2, "unknown model 'resnt-20'; did you mean 'resnet-20'"),
        (["train", "resnet-21"], 2, "20"),
        (["train", "resnet-20", "--data", "minst"], 2, "unknown dataset 'minst'; did you mean 'mnist'"),
        (["train", "resnet-20", "--epochs", "0"], 2, "training.epochs: input should be greater than or equal to 1"),
        (["train", "resnet-20", "--epochs", "two"], 2, "--epochs 'two': expected INT"),
        (["train", "resnet-20", "--epohcs", "1"], 2, "unknown option --epohcs; did you mean --epochs?"),
        (["train", "resnet-20", "--stps", "3"], 2, "unknown option --stps; did you mean --steps"),
        (["train", "resnet-20", "--evaluate-evry", "3"], 2, "unknown option '--evaluate-evry'"),
        (["train", "resnet-20", "--optimizer", "sdg"], 2, "unknown --optimizer 'sdg'; did you mean 'sgd'?"),
        (["train", "resnet-20", "--lr", "-0.1"], 2, "optimizer.lr: input should be greater than 0, got -0.1"),
        (["train", "resnet-20", "--batch-size", "5000"], 2, "5000"),
        (
            ["train", "resnet-20", "--set", "optimizer.nestrov=true"],
            2,
            "unknown option optimizer.nestrov; did you mean",
        ),
        (["train", "resnet-20", "--preset", "li2015"], 2, "unknown preset 'li2015'; did you mean 'li2016'"),
        (["train", "resnet-20", "--arg", "widths"], 2, "--arg 'widths' is not understood; expected key=value"),
        (["train", "resnet-20", "--arg", "widths=0,1,2"], 2, "widths"),
        (["train", "resnet-101-imagenet"], 2, "64 or more pixels a side; got a batch of shape (1, 1, 8, 8)"),
        (["train", "resnet-20", "--config", "nowhere.json"], 3, "cannot read the configuration nowhere.json"),
        (["train"], 2, "Missing from leadline train"),
        (["list", "modles"], 2, "unknown kind 'modles'; did you mean 'models'"),
    ],
)
def test_mistakes_are_one_line(
    words: list[str],
    code: int,
    said: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert err.count("\n") == 1 and err.startswith("leadline: ")
    assert not list(tmp_path.iterdir())


def test_the_overview_names_every_verb() -> None:
    assert all(verb in overview() for verb in verbs())


def test_results_and_progress_go_their_own_ways(tmp_path: Path) -> None:
    words = ["train", "resnet-20", "--arg", "widths=4,4,8", "--steps", "3", "--out", str(tmp_path), "--json"]
    ended = leadline(*words)
    assert ended.returncode == 0, ended.stderr
    result = json.loads(ended.stdout)
    assert result["outcome"] == "finished" and result["steps"] == 3
    assert "test loss" in ended.stderr
    again = leadline(*words)
    assert json.loads(again.stdout) == result


def test_a_configuration_file_is_what_run_json_has(tmp_path: Path) -> None:
    first = leadline("train", "resnet-20", "--arg", "widths=4,4,8", "--steps", "2", "--out", str(tmp_path), "--json")
    run = Path(json.loads(first.stdout)["run"])
    words = ["--arg", "widths=4,4,8", "--config", str(run / "run.json"), "--out", str(tmp_path / "more"), "--json"]
    second = leadline("train", "resnet-20", *words)
    assert Path(json.loads(second.stdout)["run"]).name == run.name


def test_a_diverging_run_exits_one_with_one_line(tmp_path: Path) -> None:
    words = ["train", "resnet-20", "--arg", "norm=none", "--lr", "1e30", "--steps", "9", "--out", str(tmp_path)]
    ended = leadline(*words)
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1].startswith("leadline: the loss is ")
    assert "first block whose output is not finite" in ended.stderr


def test_a_folder_without_rights_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ended = leadline("train", "resnet-20", "--arg", "widths=4,4,8", "--steps", "2", "--out", str(tmp_path / "file"))
    assert ended.returncode == 3
    assert ended.stderr.startswith("leadline: cannot write the run folder")
    assert ended.stderr.count("\n") == 1


def test_a_run_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    words = ["train", "resnet-20", "--arg", "widths=4,4,8", "--steps", "2", "--out", str(tmp_path)]
    assert leadline(*words).returncode == 0
    run = next(tmp_path.iterdir())
    (run / "done.json").write_text(json.dumps({"format": 99}))
    ended = leadline(*words)
    assert ended.returncode == 3 and "newer leadline (format 99)" in ended.stderr


def test_listing_is_filtered_and_for_machines() -> None:
    ended = leadline("list", "models", "resnet-1*", "--json")
    names = [entry["name"] for entry in json.loads(ended.stdout)]
    assert "resnet-110" in names and all(name.startswith("resnet-1") for name in names)


def test_the_demo_tells_the_three_networks_apart(tmp_path: Path) -> None:
    rows = json.loads(leadline("demo", "--out", str(tmp_path), "--json").stdout)
    assert [(row["verdict"], row["root"]) for row in rows] == [
        ("will not train", "LL101"),
        ("trains slowly", "LL103"),
        ("healthy", None),
    ]
    plain, normalised, residual = (row["test_accuracy"] for row in rows)
    assert plain < 0.2 < 0.8 < residual
    assert normalised < residual
    assert len(list(tmp_path.glob("*/done.json"))) == len(list(tmp_path.glob("*/diagnosis.json"))) == 3
    assert (tmp_path / "report.html").stat().st_size > 10_000 and (tmp_path / "curves.svg").exists()
