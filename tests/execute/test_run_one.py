"""Runs: the same configuration is the same run, however often it is interrupted."""

import json
import math
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from leadline.analysis.profile import Profile
from leadline.core.config import RunConfig
from leadline.core.errors import UsageError
from leadline.execute.run_one import Diverged, Settings, Stopped, device, run_one
from leadline.store.layout import RunFolder
from leadline.store.reader import read

SMALL = {
    "model": {"name": "resnet-20", "args": {"widths": [4, 4, 8]}},
    "data": {"name": "digits", "batch_size": 64},
    "optimizer": {"lr": 0.05},
    "training": {"steps": 30},
}


def config(**change: object) -> RunConfig:
    return RunConfig.parse({**SMALL, **change})


def content(folder: RunFolder) -> tuple[bytes, bytes, bytes]:
    """Readings, outcome and final weights, as bytes."""
    final = max(folder.checkpoint.iterdir())
    return folder.readings.read_bytes(), folder.done_json.read_bytes(), (final / "model.safetensors").read_bytes()


def test_a_run_is_recorded_and_never_done_twice(tmp_path: Path) -> None:
    result = run_one(config(), tmp_path)
    run = read(result.folder.path)
    assert run.state == "done" and not run.notes
    losses = run.readings.where(name="train/loss")
    assert losses["step"].tolist() == list(range(30))
    assert losses["value"][-5:].mean() < losses["value"][:5].mean()
    assert run.readings.where(name="test/accuracy")["step"].tolist() == [22, 30]
    assert run.record["data_digest"] and run.record["environment"]["packages"]["torch"] == torch.__version__
    assert result.outcome["best"]["accuracy"] >= result.outcome["last"]["accuracy"]
    before = {path: path.stat().st_mtime_ns for path in result.folder.path.rglob("*")}
    assert run_one(config(), tmp_path).outcome == result.outcome
    assert before == {path: path.stat().st_mtime_ns for path in result.folder.path.rglob("*")}


def test_stopping_anywhere_and_going_on_changes_nothing(tmp_path: Path) -> None:
    whole = content(run_one(config(), tmp_path / "whole").folder)
    asked = iter(range(1000))
    settings = Settings(stop=lambda: next(asked) % 7 == 6)
    stops = 0
    while True:
        try:
            result = run_one(config(), tmp_path / "pieces", settings=settings)
            break
        except Stopped as stopped:
            stops += 1
            assert stopped.exit_code == 130
    assert stops >= 3
    assert content(result.folder) == whole


PROJECTED = {"model": {"name": "procresnet-22", "args": {"widths": [2, 4, 4]}}, "training": {"steps": 20}}


@pytest.mark.parametrize("projection", [{}, {"every": 2, "schedule": "random"}, {"momentum": "tangent"}])
def test_a_run_with_projections_can_be_stopped_anywhere_too(tmp_path: Path, projection: dict[str, object]) -> None:
    asked_for = config(**PROJECTED, projection=projection)
    whole = run_one(asked_for, tmp_path / "whole").folder
    asked = iter(range(1000))
    settings = Settings(stop=lambda: next(asked) % 7 == 6)
    stops = 0
    while True:
        try:
            result = run_one(asked_for, tmp_path / "pieces", settings=settings)
            break
        except Stopped:
            stops += 1
    assert stops >= 2
    assert content(result.folder) == content(whole)
    free = run_one(config(**PROJECTED), tmp_path / "free").folder
    assert content(free)[2] != content(whole)[2]


def test_projections_keep_the_transitions_norm_preserving(tmp_path: Path) -> None:
    worst = {}
    for name, part in {"kept": {"projection": {}}, "free": {}}.items():
        done = run_one(config(**PROJECTED, **part), tmp_path).folder
        weights = load_file(max(done.checkpoint.iterdir()) / "model.safetensors")
        kernels = [each for each in weights.values() if each.ndim == 4 and each.shape[2:] == (1, 1)]
        kernels = [each for each in kernels if each.shape[0] == 2 * each.shape[1]]
        values = [torch.linalg.svdvals(kernel[..., 0, 0].double()) for kernel in kernels]
        assert kernels
        worst[name] = max(float((each / each.mean() - 1).abs().max()) for each in values)
    assert worst["kept"] < 1e-5 < worst["free"]


def test_a_projection_needs_something_to_project(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no convolution of Chain changes the shape"):
        run_one(config(model="shortcut-net-4", data={"name": "teacher"}, projection={}), tmp_path)
    assert not list(tmp_path.iterdir())


PROBES = (
    "light",
    "update_ratio@every:7",
    "gradient_range@log:2",
    "generalisation_gap@every:10",
    "activation_range@end",
)


def test_a_run_with_probes_can_be_stopped_anywhere_too(tmp_path: Path) -> None:
    whole = run_one(config(probes=PROBES), tmp_path / "whole")
    asked = iter(range(1000))
    settings = Settings(stop=lambda: next(asked) % 7 == 6)
    stops = 0
    while True:
        try:
            result = run_one(config(probes=PROBES), tmp_path / "pieces", settings=settings)
            break
        except Stopped:
            stops += 1
    assert stops >= 3
    assert content(result.folder) == content(whole.folder)
    readings = read(whole.folder.path).readings
    for probe, steps in {
        "gradient_norm_ratio": range(30),
        "update_ratio": range(0, 30, 7),
        "activation_range": [29],
    }.items():
        assert sorted(set(readings.where(probe=probe)["step"].tolist())) == list(steps)


def test_probes_are_described_and_change_no_weight(tmp_path: Path) -> None:
    read_out, silent = (run_one(config(probes=probes), tmp_path) for probes in (PROBES, ()))
    assert content(read_out.folder)[2] == content(silent.folder)[2]
    run = read(read_out.folder.path)
    assert run.record["probes"]["update_ratio"] == {"axis": "layer", "when": "every:7", "args": {}}
    profile = Profile.of_run(run)
    assert profile.names("gradient_norm_ratio")[0] == "blocks.stage1_block1"
    assert len(profile["gradient_norm_ratio/ratio"]) == 9 and math.isfinite(profile["generalisation_gap/gap"][0])
    assert not any(profile.notes(metric) for metric in profile.metrics if "transition" not in metric)


COMMAND = [sys.executable, "-m", "leadline", "train", "resnet-20", "--arg", "widths=4,4,8", "--lr", "0.05", "--steps"]


def train(out: Path, steps: int, *more: str) -> subprocess.Popen[bytes]:
    words = [*COMMAND, str(steps), "--out", str(out), "--checkpoint-seconds", "0.05", "--json", *more]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_kill_nine_at_random_moments_changes_nothing(tmp_path: Path) -> None:
    whole, _ = train(tmp_path / "whole", 120).communicate()
    chance = random.Random(0)
    kills = 0
    for _ in range(3):
        process = train(tmp_path / "killed", 120)
        folder = RunFolder(tmp_path / "killed" / Path(json.loads(whole)["run"]).name)
        deadline = time.monotonic() + 60
        while not folder.readings.exists() and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.01)
        time.sleep(chance.uniform(0.0, 0.7))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        kills += process.returncode == -signal.SIGKILL
    assert kills
    out, err = train(tmp_path / "killed", 120).communicate()
    assert json.loads(out)["last"] == json.loads(whole)["last"], err
    assert content(folder) == content(RunFolder(Path(json.loads(whole)["run"])))


def test_a_terminated_run_says_how_to_go_on(tmp_path: Path) -> None:
    process = train(tmp_path, 5000)
    while not list(tmp_path.glob("*/readings.jsonl")):
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"the same command goes on from there" in err


def test_a_diverging_run_ends_with_step_and_block(tmp_path: Path) -> None:
    wild = config(optimizer={"lr": 1e30}, model={"name": "resnet-20", "args": {"norm": "none"}})
    with pytest.raises(Diverged, match=r"the loss is (nan|inf) at step \d+; the first block .* is (stem|blocks\.\S+)"):
        run_one(wild, tmp_path)
    folder = RunFolder(tmp_path / wild.identity)
    outcome = json.loads(folder.done_json.read_text())
    assert outcome["outcome"] == "diverged"
    last = list(read(folder.path).readings.rows())[-1]
    assert last["step"] == outcome["steps"] and not math.isfinite(last["value"])
    with pytest.raises(Diverged):
        run_one(wild, tmp_path)


@pytest.mark.parametrize(
    "training",
    [
        {"steps": 4, "precision": "bf16"},
        {"steps": 4, "precision": "fp64"},
        {"steps": 4, "accumulate": 4, "clip": 1.0},
        {"steps": 4, "channels_last": True},
    ],
)
def test_arithmetics_start_alike(tmp_path: Path, training: dict[str, object]) -> None:
    def first(part: dict[str, object]) -> float:
        folder = run_one(config(training=part), tmp_path).folder
        return float(read(folder.path).readings["value"][0])

    assert first(training) == pytest.approx(first({"steps": 4}), rel=0.05)


def test_block_checkpointing_changes_no_number(tmp_path: Path) -> None:
    plain, spared = (
        run_one(config(training={"steps": 6, "precision": "fp64", "checkpoint_blocks": spare}), tmp_path).folder
        for spare in (False, True)
    )
    assert plain.path != spared.path
    assert plain.readings.read_bytes() == spared.readings.read_bytes()


def test_best_weights_and_last_weights_are_told_apart(tmp_path: Path) -> None:
    result = run_one(config(training={"epochs": 3}), tmp_path)
    accuracies = read(result.folder.path).readings.where(name="test/accuracy")["value"]
    assert result.outcome["best"]["accuracy"] == accuracies.max()
    assert result.outcome["last"]["accuracy"] == accuracies[-1]
    assert set(load_file(max(result.folder.checkpoint.iterdir()) / "model.safetensors"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model": "resnet-21"}, "resnet"),
        ({"model": "resnt-20"}, "unknown model 'resnt-20'; did you mean"),
        ({"data": {"name": "digit"}}, "unknown dataset 'digit'; did you mean 'digits'"),
        ({"data": {"name": "digits", "batch_size": 5000}}, "5000"),
        ({"training": {"accumulate": 7}}, "64|128"),
        ({"model": {"name": "resnet-20", "args": {"nrm": "none"}}}, "nrm"),
        ({"probes": ["weight_nrm"]}, "unknown probe 'weight_nrm'; did you mean 'weight_norm'"),
    ],
)
def test_what_cannot_be_run_leaves_nothing_behind(tmp_path: Path, change: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        run_one(config(**change), tmp_path / "runs")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "runs").exists()


def test_devices() -> None:
    assert device("cpu").type == "cpu"
    with pytest.raises(UsageError, match="expected auto, cpu, cuda or mps"):
        device("tpu")
    if not torch.cuda.is_available():
        with pytest.raises(UsageError, match="'cuda' is not there"):
            device("cuda")


@pytest.mark.gpu
def test_on_cuda_too(tmp_path: Path) -> None:
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    ours = read(run_one(config(), tmp_path / "cuda", settings=Settings(device="cuda")).folder.path)
    theirs = read(run_one(config(), tmp_path / "cpu", settings=Settings(device="cpu")).folder.path)
    assert ours.readings["value"][0] == pytest.approx(theirs.readings["value"][0], rel=1e-4)


def test_the_gradient_at_the_input_is_taken_where_a_probe_asks_for_it_and_changes_nothing(tmp_path: Path) -> None:
    plain = run_one(config(training={"steps": 4}), tmp_path)
    asked = run_one(config(training={"steps": 4}, probes=["gradient_norm_ratio(stem=true)@every:2"]), tmp_path)
    ratios = read(asked.folder.path).readings.where(name="ratio/stem")
    assert ratios["step"].tolist() == [0, 2] and (ratios["value"] > 0).all()
    losses = [read(run.folder.path).readings.where(name="train/loss")["value"] for run in (plain, asked)]
    assert losses[0].tolist() == losses[1].tolist()
