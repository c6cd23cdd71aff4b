"""Two processes hear what one hears on the whole batch: data parallel, fully sharded, tensor parallel."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from foreign import build
from torch import Tensor, nn
from torch.nn import functional as F

from leadline.taps.anatomy import anatomy
from leadline.taps.reductions import FROBENIUS
from leadline.taps.tape import Tap, Tape

WAYS = ("ddp", "fsdp", "tensor")


def gather(mine: Any) -> list[Any]:
    everyone: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, mine)
    return everyone


def split(model: nn.Module, way: str) -> nn.Module:
    from torch.distributed.device_mesh import init_device_mesh  # a second each, in a file that is always collected
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    from torch.nn.parallel import DistributedDataParallel

    mesh = init_device_mesh("cpu", (2,))
    if way == "ddp":
        return DistributedDataParallel(model)
    if way == "fsdp":
        for module in model:
            if isinstance(module, nn.Linear):
                fully_shard(module, mesh=mesh)
        return fully_shard(model, mesh=mesh)
    return parallelize_module(model, mesh, {"1": ColwiseParallel(use_local_output=False), "3": RowwiseParallel()})


def listen(model: nn.Module, x: Tensor, y: Tensor, **reading: Any) -> np.ndarray:
    taps = [Tap(place, FROBENIUS, of) for place in anatomy(model, x).boundaries for of in ("gradient", "value")]
    with Tape(model, taps) as tape:
        F.cross_entropy(model(x), y).backward()
        heard = tape.read(**reading)
    return np.array([heard.get(tap, np.nan) for tap in taps])


def work(rank: int, folder: str) -> None:
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    for way in WAYS:
        foreign, x, y = build("mlp"), torch.linspace(-1, 1, 6 * 48).sin().reshape(6, 3, 4, 4), torch.arange(6)
        whole = listen(foreign.model, x, y)
        model = split(foreign.model, way)
        if way == "tensor":
            found = listen(model, x, y)
        else:
            found = listen(model, x.chunk(2)[rank], y.chunk(2)[rank], gather=gather, scale=2.0)
        np.save(f"{folder}/{way}-{rank}.npy", np.stack([whole, found]))
    dist.destroy_process_group()


@pytest.mark.slow
def test_two_processes_hear_what_one_hears(tmp_path: Path) -> None:
    """In a fresh interpreter, because one that has run other tests may have threads that a fork loses."""
    path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, __file__, str(tmp_path)]
    subprocess.run(command, check=True, timeout=120, env={**os.environ, "PYTHONPATH": path})
    for way in WAYS:
        for rank in range(2):
            whole, found = np.load(tmp_path / f"{way}-{rank}.npy")
            assert np.isnan(whole).sum() == 1  # the data need no gradient
            np.testing.assert_allclose(found, whole, rtol=1e-5)


if __name__ == "__main__":
    torch.multiprocessing.start_processes(work, (sys.argv[1],), nprocs=2, start_method="fork")
