"""Two processes train the run that one trains: the same losses and readings, whoever starts it and whoever ends it."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from leadline.core.config import RunConfig
from leadline.execute.run_one import Settings, Stopped, run_one
from leadline.store.reader import read

NET = {"name": "resnet-20", "args": {"widths": [4, 4, 8]}}
PROBES = ("light", "update_ratio@every:4", "gradient_range@log:2", "generalisation_gap@every:8", "activation_range@end")
STEPS = 14


def config(**change: Any) -> RunConfig:
    training = {"steps": STEPS, **change.pop("training", {})}
    plain = {"model": NET, "data": {"name": "digits", "batch_size": 64}, "optimizer": {"lr": 0.02}, "probes": PROBES}
    return RunConfig.parse({**plain, "training": training, **change})


EXACT = {"precision": "fp64"}
PROJECTED = {"name": "procresnet-22", "args": {"widths": [4, 8, 8]}}
CASES: dict[str, RunConfig] = {
    "single precision": config(model={"name": "resnet-20", "args": {"widths": [4, 4, 8], "norm": "none"}}),
    "synchronised norm": config(training=EXACT),
    "local norm": config(training={**EXACT, "local_norm": 2}),
    "accumulation and clipping": config(training={**EXACT, "accumulate": 2, "clip": 0.5}),
    "recomputed blocks": config(training={**EXACT, "checkpoint_blocks": True}),
    "projections": config(model=PROJECTED, projection={"every": 2, "schedule": "random"}, training=EXACT),
    "tangents": config(model=PROJECTED, projection={"momentum": "tangent"}, training=EXACT),
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
    torch.distributed.destroy_process_group()


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


def furthest(ours: Path, theirs: Path, asked: RunConfig, *, probe: str | None = None) -> float:
    """The largest relative difference of two runs' readings, which have to be of the same things."""
    a, b = values(ours, asked), values(theirs, asked)
    assert a.keys() == b.keys()
    keys = [key for key in a if probe is None or key[1] == probe]
    x, y = (np.array([side[key] for key in keys]) for side in (a, b))
    assert (np.isfinite(x) == np.isfinite(y)).all()
    there = np.isfinite(x)
    return float((np.abs(x - y)[there] / np.maximum(np.abs(x[there]), 1e-9)).max())


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", CASES)
def test_two_processes_train_what_one_trains(runs: Path, way: str, case: str) -> None:
    asked = CASES[case]
    losses = furthest(runs / "one", runs / way, asked, probe="loss")
    readings = furthest(runs / "one", runs / way, asked)
    print(f"\n{way}, {case}: losses {losses:.1e}, readings {readings:.1e} apart")
    assert losses < 1e-6 and readings < 1e-5
    if asked.training.precision == "fp64":
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


def test_local_norms_are_others(runs: Path) -> None:
    own, shared = (read(runs / "one" / CASES[name].identity).readings for name in ("local norm", "synchronised norm"))
    a, b = (table.where(name="train/loss")["value"] for table in (own, shared))
    assert abs(a[0] - b[0]) > 1e-3


if __name__ == "__main__":
    torch.multiprocessing.start_processes(work, (sys.argv[1],), nprocs=2, start_method="fork")
