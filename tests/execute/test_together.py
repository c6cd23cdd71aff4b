"""Two processes train the run that one trains: the same losses and readings, whoever starts it and whoever ends it."""

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from leadline.core.config import RunConfig
from leadline.data import load
from leadline.execute.run_one import Settings, Silent, Stopped, build_model, run_one
from leadline.projections import Procrustes
from leadline.projections.procrustes import Site
from leadline.store.reader import read
from leadline.train.parallel import Parallel
from leadline.train.processes import rank, whole
from leadline.train.spread import SpreadProcrustes

NET = {"name": "resnet-20", "args": {"widths": [4, 4, 8]}}
PROBES = ("light", "update_ratio@every:4", "gradient_range@log:2", "generalisation_gap@every:8", "activation_range@end")
STEPS = 14


def config(**change: Any) -> RunConfig:
    training = {"steps": STEPS, **change.pop("training", {})}
    plain = {"model": NET, "data": {"name": "digits", "batch_size": 64}, "optimizer": {"lr": 0.02}, "probes": PROBES}
    return RunConfig.parse({**plain, "training": training, **change})


EXACT = {"precision": "fp64"}
# small enough for ranges to be of all values: of more, each process takes a sample of its own
PROJECTED = {
    "model": {"name": "procresnet-22", "args": {"widths": [2, 4, 4]}},
    "data": {"name": "digits", "batch_size": 16},
}
CASES: dict[str, RunConfig] = {
    "single precision": config(model={"name": "resnet-20", "args": {"widths": [4, 4, 8], "norm": "none"}}),
    "synchronised norm": config(training=EXACT),
    "local norm": config(training={**EXACT, "local_norm": 2}),
    "accumulation and clipping": config(training={**EXACT, "accumulate": 2, "clip": 0.5}),
    "recomputed blocks": config(training={**EXACT, "checkpoint_blocks": True}),
    "projections": config(**PROJECTED, projection={"every": 2, "schedule": "random"}, training=EXACT),
    "tangents": config(**PROJECTED, projection={"momentum": "tangent"}, training=EXACT),
}
WAYS = ("ddp", "fsdp")
HANDED_OVER = "synchronised norm"


def stopping(after: int, **how: Any) -> Settings:
    asked = iter(range(10**6))
    return Settings(stop=lambda: next(asked) >= after - 1, **how)


def work(rank: int, folder: str) -> None:
    """What each of two processes does: every case either way, then runs that are handed over."""
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    for way in WAYS:
        for asked in CASES.values():
            run_one(asked, Path(folder) / way, settings=Settings(parallel=way))
        asked = CASES[HANDED_OVER]
        with contextlib.suppress(Stopped):
            run_one(asked, Path(folder) / f"{way} to one", settings=stopping(5, parallel=way))
        run_one(asked, Path(folder) / f"one to {way}", settings=Settings(parallel=way))
        try:
            run_one(asked, Path(folder) / f"{way} twice", settings=stopping(5, parallel=way))
        except Stopped:
            run_one(asked, Path(folder) / f"{way} twice", settings=Settings(parallel=way))
        project(Path(folder), way)
    torch.distributed.destroy_process_group()


def project(folder: Path, way: str) -> None:
    """Projects a model that several processes have; each writes down which kernels it did and what all are then."""
    torch.manual_seed(0)
    model = build_model(CASES["projections"], load("digits"))
    parallel = Parallel.of(model, [*model.blocks], way)
    made: list[str] = []

    class Counted(SpreadProcrustes):
        def projected(self, site: Site, *, warm: bool) -> torch.Tensor:
            made.append(site.name)
            return super().projected(site, warm=warm)

    procrustes = Counted(parallel.model)
    procrustes.project()
    kernels = {site.name: whole(site.kernel).tolist() for site in procrustes.sites}
    (folder / f"{way}-{rank()}.json").write_text(json.dumps({"made": made, "kernels": kernels}))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what two processes made, and beside it what one made."""
    folder = tmp_path_factory.mktemp("together")
    for asked in CASES.values():
        run_one(asked, folder / "one")
    for way in WAYS:
        with pytest.raises(Stopped):
            run_one(CASES[HANDED_OVER], folder / f"one to {way}", settings=stopping(5))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    # a fresh interpreter: one that has run other tests may have threads that a fork loses
    subprocess.run([sys.executable, __file__, str(folder)], check=True, timeout=300, env=environment)
    for way in WAYS:
        run_one(CASES[HANDED_OVER], folder / f"{way} to one")
    return folder


def values(folder: Path, asked: RunConfig) -> dict[tuple[Any, ...], float]:
    rows = read(folder / asked.identity).readings.rows()
    return {(row["step"], row["probe"], row["name"], row["block"]): row["value"] for row in rows}


def furthest(ours: Path, theirs: Path, asked: RunConfig, *, probe: str | None = None, along: bool = False) -> float:
    """The largest relative difference of two runs' readings, which have to be of the same things.

    `along`: relative to the largest of a profile, for a gradient that is all but cancelled has no digits of its own.
    """
    a, b = values(ours, asked), values(theirs, asked)
    assert a.keys() == b.keys()
    keys = [key for key in a if probe is None or key[1] == probe]
    x, y = (np.array([side[key] for key in keys]) for side in (a, b))
    assert (np.isfinite(x) == np.isfinite(y)).all()
    size = dict.fromkeys((key[:3] for key in keys), 0.0)
    for key, value in zip(keys, x, strict=True):
        size[key[:3]] = max(size[key[:3]], abs(value) if np.isfinite(value) else 0.0)
    scale = np.array([size[key[:3]] for key in keys]) if along else np.abs(x)
    there = np.isfinite(x)
    return float((np.abs(x - y)[there] / np.maximum(scale[there], 1e-9)).max())


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", CASES)
def test_two_processes_train_what_one_trains(runs: Path, way: str, case: str) -> None:
    asked = CASES[case]
    losses = furthest(runs / "one", runs / way, asked, probe="loss")
    exact = asked.training.precision == "fp64"
    readings = furthest(runs / "one", runs / way, asked, along=not exact)
    print(f"\n{way}, {case}: losses {losses:.1e}, readings {readings:.1e} apart")
    assert losses < 1e-6 and readings < 1e-5
    if exact:
        assert losses < 1e-12 and readings < 1e-9


@pytest.mark.parametrize("way", WAYS)
def test_one_process_goes_on_with_what_two_began_and_the_reverse(runs: Path, way: str) -> None:
    asked = CASES[HANDED_OVER]
    for name in (f"{way} to one", f"one to {way}"):
        assert furthest(runs / "one", runs / name, asked) < 1e-9


def weights(folder: Path, asked: RunConfig) -> dict[str, torch.Tensor]:
    return load_file(max((folder / asked.identity / "checkpoint").iterdir()) / "model.safetensors")


@pytest.mark.parametrize("way", WAYS)
def test_two_processes_go_on_bit_for_bit(runs: Path, way: str) -> None:
    asked = CASES[HANDED_OVER]
    whole, pieces = weights(runs / way, asked), weights(runs / f"{way} twice", asked)
    assert whole.keys() == pieces.keys() and all(torch.equal(whole[name], pieces[name]) for name in whole)
    names = [runs / way / asked.identity, runs / f"{way} twice" / asked.identity]
    assert len({(name / "readings.jsonl").read_bytes() for name in names}) == 1


@pytest.mark.parametrize("way", WAYS)
def test_a_kernel_is_projected_once_and_is_the_same_everywhere(runs: Path, way: str) -> None:
    first, second = (json.loads((runs / f"{way}-{number}.json").read_text()) for number in range(2))
    torch.manual_seed(0)
    alone = Procrustes(build_model(CASES["projections"], load("digits")))
    alone.project()
    assert first["kernels"] == second["kernels"] == {site.name: site.kernel.tolist() for site in alone.sites}
    assert sorted(first["made"] + second["made"]) == sorted(first["kernels"])
    assert abs(len(first["made"]) - len(second["made"])) <= 1


def test_local_norms_are_others(runs: Path) -> None:
    own, shared = (read(runs / "one" / CASES[name].identity).readings for name in ("local norm", "synchronised norm"))
    a, b = (table.where(name="train/loss")["value"] for table in (own, shared))
    assert abs(a[0] - b[0]) > 1e-3


TRAIN = ("train", "resnet-20", "--arg", "widths=4,4,8", "--batch-size", "64", "--precision", "fp64", "--steps", "200")
KILLED = {"ddp": 1, "fsdp": 0}


@pytest.fixture(scope="module")
def bereft(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, subprocess.CompletedProcess[str]]]:
    """Two processes a run of which one is killed with SIGKILL, either way: the folder, and how the other ended."""
    folder = tmp_path_factory.mktemp("bereft")
    pairs = {way: [together(folder / way, way, number) for number in range(2)] for way in KILLED}
    ended = {}
    for way, pair in pairs.items():
        until = time.monotonic() + 240
        while not list((folder / way).glob("*/checkpoint/step-*")):
            assert time.monotonic() < until and not any(process.poll() for process in pair)
            time.sleep(0.02)
        pair[KILLED[way]].kill()
        pair[KILLED[way]].communicate()
        other = pair[1 - KILLED[way]]
        said = other.communicate(timeout=120)
        ended[way] = folder / way, subprocess.CompletedProcess(TRAIN, other.returncode, *said)
    return ended


def together(folder: Path, way: str, rank: int) -> "subprocess.Popen[str]":
    """One of two processes as torchrun starts them; the ways have meeting places of their own."""
    folder.mkdir(exist_ok=True)
    if not (folder / "port").exists():
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            (folder / "port").write_text(str(free.getsockname()[1]))
    told = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": (folder / "port").read_text()}
    told |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    words = (sys.executable, "-m", "leadline", *TRAIN, "--parallel", way, "--checkpoint-seconds", "0.2")
    return subprocess.Popen(
        (*words, "--out", str(folder)),
        env={**os.environ, **told},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("way", WAYS)
def test_a_killed_process_ends_the_other_with_one_line_and_one_goes_on(
    bereft: dict[str, tuple[Path, subprocess.CompletedProcess[str]]], way: str, tmp_path: Path
) -> None:
    folder, ended = bereft[way]
    lines = [line for line in ended.stderr.splitlines() if line]
    assert ended.returncode == 1 and len(lines) == 1 and not ended.stdout
    number = 1 - KILLED[way]
    assert re.fullmatch(
        rf"leadline: process {number} of 2 lost the others \(.{{5,150}}\); the same command goes on .*", lines[0]
    )
    (run,) = folder.glob("resnet*")
    assert read(run).state == "dead"
    asked = RunConfig.parse(read(run).record["config"])
    before = read(run).readings.where(name="train/loss").height
    goes_on(asked, folder)
    run_one(asked, tmp_path)
    apart = furthest(tmp_path, folder, asked)
    print(f"\n{way}: killed after {before} steps; gone on with in one process, readings {apart:.1e} apart")
    assert 0 < before < 200 and apart < 1e-9


def goes_on(asked: RunConfig, folder: Path) -> None:
    started: list[int] = []

    class Start(Silent):
        def begin(self, name: str, *, step: int, steps: int, batch: int) -> None:
            started.append(step)

    run_one(asked, folder, progress=Start())
    assert started[0] > 0


if __name__ == "__main__":
    torch.multiprocessing.start_processes(work, (sys.argv[1],), nprocs=2, start_method="fork")
