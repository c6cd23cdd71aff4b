"""Joins the processes that torchrun started, so that they train one run together; of one alone nothing changes."""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import distributed

from leadline.core.errors import LeadlineError
from leadline.train.processes import rank, world

NAMES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
GONE = ("gloo", "nccl", "connection", "timed out", "process group")
"""Words of the errors that torch.distributed raises where another process does not answer."""


class Lost(LeadlineError):
    """Another process of the run went away."""


@contextmanager
def joined(device: str) -> Iterator[None]:
    """Inside, all processes that torchrun started for this command know each other."""
    if not all(name in os.environ for name in NAMES) or os.environ["WORLD_SIZE"] == "1":
        yield
        return
    if os.environ.get("LOCAL_WORLD_SIZE") == os.environ["WORLD_SIZE"] and sys.platform == "linux":
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    accelerated = device in ("auto", "cuda") and torch.cuda.is_available()
    if accelerated:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    distributed.init_process_group("cpu:gloo,cuda:nccl" if accelerated else "gloo")
    try:
        yield
    finally:
        distributed.destroy_process_group()


@contextmanager
def in_company() -> Iterator[None]:
    """A process that goes away ends the others with one line."""
    try:
        yield
    except RuntimeError as error:
        said = str(error)
        if world() == 1 or not any(word in said.lower() for word in GONE):
            raise
        which, reason = f"process {rank()} of {world()}", _short(said)
        raise Lost(f"{which} lost the others ({reason}); the same command goes on from the last checkpoint") from None


def _short(said: str) -> str:
    """What happened, without the place in the source of gloo before it and the advice behind it."""
    return re.sub(r"^\[\S+:\d+\] ", "", said.splitlines()[0]).partition(". ")[0]
