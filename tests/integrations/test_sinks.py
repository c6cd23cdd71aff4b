"""Trackers get aggregated readings; one that raises or hangs costs one warning and nothing else."""

import json
import logging
import math
import os
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import leadline as ll
from leadline.cli import main
from leadline.core.errors import UsageError
from leadline.store.reader import read
from leadline.store.sinks import ForwardingWriter, Scalars, chosen, scalars


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    for name in ("MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME", "WANDB_DIR"):
        monkeypatch.delenv(name, raising=False)


class Kept:
    """A tracker in memory."""

    def __init__(self) -> None:
        self.opened: list[tuple[Path, dict[str, Any]]] = []
        self.steps: dict[int, dict[str, float]] = {}
        self.closed: list[Any] = []
        self.threads: set[str] = set()

    def open(self, run: Path, record: Mapping[str, Any]) -> None:
        self.opened.append((run, dict(record)))

    def log(self, step: int, scalars: Scalars) -> None:
        assert step not in self.steps
        self.steps[step] = dict(scalars)
        self.threads.add(threading.current_thread().name)

    def close(self, outcome: Mapping[str, Any] | None) -> None:
        self.closed.append(outcome)


class Broken(Kept):
    """A tracker that fails at one of its calls, with something that is not even an Exception."""

    def __init__(self, at: str, error: type[BaseException]) -> None:
        super().__init__()
        self.at, self.error, self.calls = at, error, 0

    def __getattribute__(self, name: str) -> Any:
        if name in ("open", "log", "close") and name == object.__getattribute__(self, "at"):
            self.calls += 1
            raise self.error("the tracker is\ndown")
        return object.__getattribute__(self, name)


class Hanging(Kept):
    """A tracker whose server never answers."""

    def __init__(self) -> None:
        super().__init__()
        self.freed = threading.Event()

    def log(self, step: int, scalars: Scalars) -> None:
        self.freed.wait(60)


def train(to: Path, *sinks: Any, steps: int = 6) -> list[float]:
    torch.manual_seed(0)
    model = ll.models.create("resnet-20", widths=[4, 4, 8])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    losses = []
    with ll.Recorder(model, to, sinks=sinks) as recorder:
        for _ in range(steps):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(torch.randn(4, 3, 8, 8)), torch.randint(10, (4,)))
            loss.backward()
            optimizer.step()
            recorder.step(loss)
            losses.append(loss.item())
    return losses


def test_what_a_tracker_gets_is_what_the_folder_has(tmp_path: Path) -> None:
    kept = Kept()
    losses = train(tmp_path / "a", kept)
    assert [found["train/loss"] for found in kept.steps.values()] == losses
    assert kept.opened[0][0] == tmp_path / "a" and kept.opened[0][1]["anatomy"]
    assert kept.closed == [read(tmp_path / "a").outcome | {}] or kept.closed[0]["outcome"] == "finished"
    assert kept.threads == {"leadline to kept"}
    readings = read(tmp_path / "a").readings
    for step, found in kept.steps.items():
        ratio = readings.where(step=step, probe="gradient_norm_ratio", name="ratio")["value"]
        said = [found[f"gradient_norm_ratio/ratio/{which}"] for which in ("min", "median", "max")]
        assert said == [ratio.min(), sorted(ratio)[len(ratio) // 2], ratio.max()]
        assert len(found) < 30 and all("/" in name for name in found)


def test_few_scalars_come_of_the_standard_probes() -> None:
    """What is one number of sixteen in a histogram, or of four modes, stays in the run folder."""
    names = ["p05", "histogram/03", "kappa/mode2"]
    assert [scalars("weight_range", name, [1.0, 2.0]) for name in names] == [{}, {}, {}]
    assert scalars("x", "kappa", [1.0, math.inf]) == {"x/kappa/min": 1.0, "x/kappa/median": math.inf,
                                                      "x/kappa/max": math.inf}  # fmt: skip
    assert scalars("x", "kappa", [math.nan]) == scalars("x", "kappa", []) == {}


@pytest.mark.parametrize("error", [RuntimeError, SystemExit, KeyboardInterrupt])
@pytest.mark.parametrize("at", ["open", "log", "close"])
def test_a_sink_that_fails_is_warned_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, at: str, error: type[BaseException]
) -> None:
    broken, kept = Broken(at, error), Kept()
    assert train(tmp_path / "a", broken, kept) == train(tmp_path / "b")
    assert broken.calls == 1
    said = [record.getMessage() for record in caplog.records if record.name == "leadline"]
    assert len(said) == 1 and "broken failed" in said[0] and "\n" not in said[0]
    assert len(kept.steps) == 6
    assert read(tmp_path / "a").state == "done"


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    sink = Hanging()
    yield sink
    sink.freed.set()


def test_a_sink_that_hangs_holds_nobody_up(tmp_path: Path, caplog: pytest.LogCaptureFixture, hanging: Hanging) -> None:
    kept = Kept()
    writer = ForwardingWriter(tmp_path / "a", sinks=[hanging, kept], room=5, patience=0.2)
    writer.describe({})
    start = time.monotonic()
    for step in range(2000):
        writer.append(step, "loss", "train/loss", 1.0)
        if step % 100 == 0:
            time.sleep(0.001)
    assert time.monotonic() - start < 5
    writer.finish({"outcome": "finished"})
    writer.close()
    said = sorted(record.getMessage() for record in caplog.records if record.name == "leadline")
    assert sum("hanging did not finish in 0.2 s" in line for line in said) == 1
    assert sum("hanging cannot keep up" in line for line in said) == 1
    assert len(said) <= 3  # the other may have fallen behind too, with room for five
    assert read(tmp_path / "a").readings.height == 2000


def test_a_resumed_run_forwards_only_what_is_new(tmp_path: Path) -> None:
    first, second = Kept(), Kept()
    with ForwardingWriter(tmp_path / "a", sinks=[first]) as writer:
        writer.describe({})
        for step in range(5):
            writer.append(step, "loss", "train/loss", float(step))
    with ForwardingWriter(tmp_path / "a", sinks=[second]) as writer:
        writer.describe({})
        for step in range(8):
            writer.append(step, "loss", "train/loss", float(step))
        writer.finish({"outcome": "finished"})
    assert list(first.steps) == [0, 1, 2, 3, 4] and first.closed == [None]
    assert list(second.steps) == [5, 6, 7] and second.closed == [{"outcome": "finished"}]


def test_tensorboard(tmp_path: Path) -> None:
    losses = train(tmp_path / "a", "tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(tmp_path / "a" / "tensorboard")).Reload()
    points = found.Scalars("train/loss")
    assert [point.step for point in points] == list(range(6))
    assert [point.value for point in points] == pytest.approx(losses, rel=1e-6)
    assert "gradient_norm_ratio/ratio/median" in found.Tags()["scalars"]


def test_wandb_offline(tmp_path: Path) -> None:
    losses = train(tmp_path / "a", "wandb")
    (binary,) = (tmp_path / "a" / "wandb").glob("offline-run-*/run-*.wandb")
    assert (tmp_path / "a" / "wandb.id").read_text().strip() in binary.name
    rows = _history(binary)
    assert [row["leadline/step"] for row in rows] == list(range(6))
    assert [row["train/loss"] for row in rows] == pytest.approx(losses)
    assert "gradient_norm_ratio/ratio/median" in rows[0]


def _history(binary: Path) -> list[dict[str, Any]]:
    from wandb.proto import wandb_internal_pb2

    rows = []
    for content in _records(binary.read_bytes()):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(content)
        if record.WhichOneof("record_type") == "history":
            items = record.history.item
            rows.append({item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in items})
    return rows


def _records(data: bytes, *, block: int = 32768) -> Iterator[bytes]:
    """What a .wandb file holds: LevelDB's log format behind a header of seven bytes."""
    at, record = 7, b""
    while at < len(data):
        if (left := block - at % block) < 7:
            at += left
            continue
        _, size, kind = struct.unpack_from("<IHB", data, at)
        record += data[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (1, 4):  # a record in one piece, or its last piece
            yield record
            record = b""


def test_mlflow_in_a_folder_and_resumed(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    losses = train(runs / "a", "mlflow")
    with ForwardingWriter(runs / "a", resume_at=0, sinks=chosen(["mlflow"])) as writer:
        writer.go_on((runs / "a" / "readings.jsonl").stat().st_size)
        writer.describe({})
        writer.append(6, "loss", "train/loss", 0.25)
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=(runs / "mlruns").as_uri())
    (run,) = client.search_runs([client.get_experiment_by_name("leadline").experiment_id])
    points = client.get_metric_history(run.info.run_id, "train/loss")
    assert [point.value for point in sorted(points, key=lambda point: point.step)] == pytest.approx([*losses, 0.25])
    assert run.info.status == "KILLED" and run.info.run_name == "a"  # the second writer never finished


def test_train_with_sinks_has_the_numbers_it_has_without(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["train", "resnet-20", "--arg", "widths=4,4,8", "--steps", "3", "--probes", "light"]
    assert main([*words, "--out", str(tmp_path / "bare")]) == 0
    assert main([*words, "--out", str(tmp_path / "both"), "--sink", "tensorboard", "--sink", "mlflow"]) == 0
    (bare,), (both,) = ((tmp_path / name).glob("resnet*") for name in ("bare", "both"))
    assert (bare / "readings.jsonl").read_bytes() == (both / "readings.jsonl").read_bytes()
    assert list((both / "tensorboard").glob("events*")) and (tmp_path / "both" / "mlruns").is_dir()
    assert main([*words, "--sink", "comet", "--seed", "1", "--out", str(tmp_path / "no")]) == 2
    assert "unknown sink 'comet'; expected one of tensorboard, wandb, mlflow" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [(name, name, name) for name in ("lightning", "transformers", "tensorboard", "wandb", "mlflow")],
)
def test_a_missing_package_is_one_line_and_leadline_needs_none(module: str, package: str, extra: str) -> None:
    code = f"""
import sys
sys.modules["{package}"] = None
import leadline, leadline.train.recorder, leadline.execute.run_one
assert not {{"lightning", "transformers", "tensorboard", "wandb", "mlflow"}} & {{
    name for name, found in sys.modules.items() if found}}
try:
    if "{module}" in ("lightning", "transformers"):
        import leadline.integrations.{module}
    else:
        leadline.Recorder(leadline.models.create("resnet-20"), "x", sinks=["{module}"])
except (ImportError, ValueError) as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.stdout == f"MissingPackage {package} is not installed; pip install 'leadline[{extra}]'\n"


def test_an_unknown_sink_is_a_clear_error() -> None:
    with pytest.raises(UsageError, match="unknown sink 'tensorbord'; did you mean 'tensorboard'"):
        ll.Recorder(nn.Linear(2, 2), "x", sinks=["tensorbord"])


def test_warnings_go_to_the_package_logger() -> None:
    assert logging.getLogger("leadline").level == logging.NOTSET
