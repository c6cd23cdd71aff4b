"""Readings to MLflow: the tracking server that is configured, or else a folder `mlruns` beside the run folders."""

import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from leadline.integrations._needs import needs, remembered
from leadline.store.sinks import Scalars

MOST = 500
"""So many metrics, or characters of a parameter, go into one request."""


class Mlflow:
    """`uri` and `experiment` are MLFLOW_TRACKING_URI and MLFLOW_EXPERIMENT_NAME when not given."""

    def __init__(self, uri: str | None = None, experiment: str | None = None) -> None:
        needs("mlflow", "mlflow")
        self.uri = uri or os.environ.get("MLFLOW_TRACKING_URI")
        self.experiment = experiment or os.environ.get("MLFLOW_EXPERIMENT_NAME", "leadline")
        self._client: Any = None
        self._run = ""

    def open(self, run: Path, record: Mapping[str, Any]) -> None:
        from mlflow import MlflowClient
        from mlflow.entities import Param

        uri = self.uri or (run.resolve().parent / "mlruns").as_uri()
        if "://" not in uri or uri.startswith("file:"):
            # newer MLflow wants to be told that a folder is meant
            os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
        self._client = MlflowClient(tracking_uri=uri)
        fresh = not (run / "mlflow.id").exists()
        self._run = remembered(run, "mlflow", lambda: self._created(run.resolve().name))
        if fresh:
            told = [Param(name, str(value)[:MOST]) for name, value in _flat(record.get("config") or {})]
            self._client.log_batch(self._run, params=told[:100])
        else:
            self._client.update_run(self._run, status="RUNNING")

    def log(self, step: int, scalars: Scalars) -> None:
        from mlflow.entities import Metric

        now = int(1000 * time.time())
        metrics = [Metric(name, value, now, step) for name, value in scalars.items()]
        for start in range(0, len(metrics), MOST):
            self._client.log_batch(self._run, metrics=metrics[start : start + MOST])

    def close(self, outcome: Mapping[str, Any] | None) -> None:
        if self._run:
            self._client.set_terminated(self._run, "FINISHED" if outcome else "KILLED")

    def _created(self, name: str) -> str:
        found = self._client.get_experiment_by_name(self.experiment)
        experiment = found.experiment_id if found else self._client.create_experiment(self.experiment)
        run: str = self._client.create_run(experiment, run_name=name).info.run_id
        return run


def _flat(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value
