"""How much memory a computation will take, said before it starts, and a refusal where it is not there."""

import os
from pathlib import Path

import torch

from leadline.core.errors import UsageError


def free_bytes(device: torch.device | None = None) -> int:
    """Memory that can still be had on `device`: of the machine or its control group, whichever is less."""
    if device is not None and device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    limits = [_of_machine(), *_of_group(Path("/sys/fs/cgroup"))]
    return min(limits)


def _of_machine() -> int:
    try:
        lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        return int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _of_group(group: Path) -> list[int]:
    try:
        limit = (group / "memory.max").read_text().strip()
        return [] if limit == "max" else [int(limit) - int((group / "memory.current").read_text())]
    except (OSError, ValueError):
        return []


def require(needed: int, what: str, *, instead: str, device: torch.device | None = None) -> None:
    """Refuse `what` where it needs more bytes than are free, saying both numbers and what to do `instead`.

    >>> require(10**18, "a dense Hessian of 353,553,391 parameters", instead="use products")
    Traceback (most recent call last):
    leadline.core.errors.UsageError: a dense Hessian of 353,553,391 parameters needs 1.0e+09 GB, ...; use products
    """
    free = free_bytes(device)
    if needed > free:
        raise UsageError(f"{what} needs {_gigabytes(needed)} GB, {_gigabytes(free)} GB are free; {instead}")


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.1f}" if size < 1e15 else f"{size / 1e9:.1e}"
