"""Readings to Weights & Biases: into the run that is active there, or else into one of its own, offline or on line."""

import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from leadline.core.plain import plain
from leadline.integrations._needs import needs, remembered
from leadline.store.sinks import Scalars

STEP = "leadline/step"


class Wandb:
    """`options` are those of `wandb.init`; without any, WANDB_MODE, WANDB_PROJECT and the like decide as usual."""

    def __init__(self, **options: Any) -> None:
        self._wandb: Any = needs("wandb", "wandb")
        self.options = options
        self._run: Any = None
        self._own = False

    def open(self, run: Path, record: Mapping[str, Any]) -> None:
        self._run = self._wandb.run
        self._own = self._run is None
        if self._own:
            self._run = self._wandb.init(**self._usual(run, record) | self.options)
        self._run.define_metric(STEP)

    def log(self, step: int, scalars: Scalars) -> None:
        for group in {name.partition("/")[0] for name in scalars}:
            self._run.define_metric(f"{group}/*", step_metric=STEP)
        self._run.log({STEP: step, **scalars})

    def close(self, outcome: Mapping[str, Any] | None) -> None:
        if self._own and self._run is not None:
            self._run.finish(exit_code=0 if outcome else 1)

    def _usual(self, run: Path, record: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "name": run.resolve().name,
            "id": remembered(run, "wandb", lambda: secrets.token_hex(4)),
            "resume": "allow",
            "dir": str(run),
            "config": plain(record.get("config") or {}),
            "settings": self._wandb.Settings(silent=True, console="off"),
        }
