"""How a run is executed and who is told: nothing here decides its numbers."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import torch

from leadline.core.errors import LeadlineError, UsageError
from leadline.train.evaluate import Score


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a run is executed; nothing here decides its numbers beyond rounding, so none of it is in its identity.

    `parallel` is what each of several processes has of the model: a copy (ddp) or a shard (fsdp).
    """

    device: str = "auto"
    compile: bool = False
    threads: int = 1
    checkpoint_seconds: float = 20.0
    sinks: tuple[str, ...] = ()
    parallel: str = "ddp"
    stop: Callable[[], bool] = field(default=lambda: False)


class Progress(Protocol):
    """Who is told how far a run is."""

    def begin(self, name: str, *, step: int, steps: int, batch: int) -> None: ...

    def advance(self, step: int, loss: float) -> None: ...

    def scored(self, step: int, score: Score) -> None: ...

    def note(self, text: str) -> None: ...

    def end(self) -> None: ...


class Silent:
    """Tells nobody."""

    def begin(self, name: str, *, step: int, steps: int, batch: int) -> None: ...

    def advance(self, step: int, loss: float) -> None: ...

    def scored(self, step: int, score: Score) -> None: ...

    def note(self, text: str) -> None: ...

    def end(self) -> None: ...


class Stopped(LeadlineError):
    """The run was asked to stop; it goes on when it is started again."""

    exit_code = 130


class Diverged(LeadlineError):
    """The run ended in a loss that is no number."""


def device(name: str) -> torch.device:
    """The device of that name; `auto` is the first accelerator there is, else the CPU."""
    found = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        return torch.device("cuda" if found["cuda"] else "mps" if found["mps"] else "cpu")
    kind = name.split(":")[0]
    if kind not in found:
        raise UsageError(f"unknown device {name!r}; expected auto, cpu, cuda or mps")
    if not found[kind]:
        raise UsageError(f"device {name!r} is not there; found {', '.join(k for k, there in found.items() if there)}")
    return torch.device(name)
