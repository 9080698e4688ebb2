"""A real SQLite store of MLflow for tests; each test has an experiment of its own in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from skillarena.orchestration.settings import TrackingSettings
from skillarena.orchestration.tracking_store import connect


class Store:
    """One experiment."""

    def __init__(self, output: Path, experiment: str) -> None:
        self.output = str(output)
        self.uri = f"sqlite:///{output / 'mlflow.db'}"
        self.settings = TrackingSettings(uri=self.uri, flush_every_s=0.2, timeout_s=60, experiment=experiment)
        self.client, self.experiment_id = connect(self.settings, self.output)

    @property
    def options(self) -> dict[str, Any]:
        """Settings with which a cell's records go here."""
        return {"tracking.uri": self.uri, "tracking.experiment": self.settings.experiment}

    def runs(self) -> list[Any]:
        return list(self.client.search_runs([self.experiment_id]))

    def run(self, kind: str) -> Any:
        """The only run of a kind: ``sweep`` or ``cell``."""
        (found,) = [run for run in self.runs() if run.data.tags["kind"] == kind]
        return found

    def history(self, run_id: str, key: str) -> list[tuple[int, float]]:
        return [(point.step, point.value) for point in self.client.get_metric_history(run_id, key)]

    def artifacts(self, run_id: str, folder: str | None = None) -> set[str]:
        return {item.path for item in self.client.list_artifacts(run_id, folder)}

    def traces(self, run_id: str) -> list[Any]:
        return list(self.client.search_traces(locations=[self.experiment_id], run_id=run_id))
