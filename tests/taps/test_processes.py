"""Two processes hear what one hears on the whole batch."""

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
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

from leadline.taps.anatomy import anatomy
from leadline.taps.reductions import FROBENIUS
from leadline.taps.tape import Tap, Tape


def gather(mine: Any) -> list[Any]:
    everyone: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, mine)
    return everyone


def heard(rank: int | None, folder: str) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, x, y = build("inplace_resnet").model.eval(), torch.randn(6, 3, 16, 16), torch.arange(6)
    if rank is not None:
        os.environ["GLOO_SOCKET_IFNAME"] = "lo"
        dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
        model, x, y = DistributedDataParallel(model), x.chunk(2)[rank], y.chunk(2)[rank]
    taps = [Tap(place, FROBENIUS, of) for place in anatomy(model, x).boundaries for of in ("gradient", "value")]
    with Tape(model, taps) as tape:
        F.cross_entropy(model(x), y).backward()
        both = tape.read(gather=gather, scale=2.0) if rank is not None else tape.read()
    np.save(f"{folder}/{rank}.npy", np.array([both[tap] for tap in taps]))
    if rank is not None:
        dist.destroy_process_group()


@pytest.mark.slow
def test_two_processes_hear_what_one_hears(tmp_path: Path) -> None:
    """In a fresh interpreter, because one that has run other tests may have threads that a fork loses."""
    path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    subprocess.run(
        [sys.executable, __file__, str(tmp_path)], check=True, timeout=120, env={**os.environ, "PYTHONPATH": path}
    )
    whole, first, second = (np.load(tmp_path / f"{rank}.npy") for rank in (None, 0, 1))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(first, whole, rtol=1e-5)


if __name__ == "__main__":
    heard(None, sys.argv[1])
    torch.multiprocessing.start_processes(heard, (sys.argv[1],), nprocs=2, start_method="fork")
