"""Readings to TensorBoard: event files in the run folder, or where `folder` says."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from leadline.core.plain import plain
from leadline.integrations._needs import needs
from leadline.store.sinks import Scalars


class Tensorboard:
    """`tensorboard --logdir runs` then shows every run; `folder` is a place for the event files of this run alone."""

    def __init__(self, folder: str | Path | None = None) -> None:
        needs("tensorboard", "tensorboard")
        self.folder = None if folder is None else Path(folder)
        self._to: Any = None

    def open(self, run: Path, record: Mapping[str, Any]) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._to = SummaryWriter(str(self.folder or run / "tensorboard"))
        told = json.dumps(plain(record.get("config") or record), indent=1, default=str)
        self._to.add_text("run", f"```\n{told}\n```")

    def log(self, step: int, scalars: Scalars) -> None:
        for name, value in scalars.items():
            self._to.add_scalar(name, value, step)

    def close(self, outcome: Mapping[str, Any] | None) -> None:  # noqa: ARG002
        if self._to is not None:
            self._to.close()
