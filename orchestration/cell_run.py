"""The MLflow run of one cell."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from skillarena.orchestration.ledger import EpisodeRow, read_config
from skillarena.orchestration.summary import Summary
from skillarena.orchestration.trace_log import TraceLog
from skillarena.orchestration.tracking_points import (
    Point,
    episode_points,
    episodes_table,
    running_points,
    summary_points,
)
from skillarena.orchestration.tracking_tags import CELL_TAG, cell_params, cell_tags
from skillarena.orchestration.tracking_write import open_run, write_points

if TYPE_CHECKING:
    from mlflow import MlflowClient

PARENT_TAG = "mlflow.parentRunId"
ARTIFACTS = ("config.json", "summary.json", "episodes.jsonl", "trajectories.jsonl", "selections.jsonl")
"""Files of a cell's folder that its run keeps."""


@dataclass(frozen=True)
class Parent:
    """The sweep that a cell's run is nested under."""

    run_id: str
    sweep: str
    """The sweep's name."""


@dataclass
class CellRun:
    """The MLflow run of one cell folder."""

    client: MlflowClient
    experiment_id: str
    cell_dir: Path
    parent: Parent | None = None
    """None leaves the run where it is."""
    traces: bool = False
    """Episodes are logged as traces too."""
    run_id: str = ""
    opened: bool = False
    """The run exists with all its tags and parameters."""
    _logged: list[EpisodeRow] = field(default_factory=list)
    _running: int = 0
    _traces: TraceLog | None = None

    def open(self) -> None:
        """Find the cell's run or create it, with its parameters and tags."""
        config = read_config(self.cell_dir)
        tags = cell_tags(config)
        if self.parent is not None:
            tags |= {PARENT_TAG: self.parent.run_id, "sweep": self.parent.sweep}
        self.run_id = open_run(
            self.client, self.experiment_id, (CELL_TAG, config["cell"]["id"]), tags, cell_params(config)
        )
        self.opened = True

    def log_rows(self, rows: Sequence[EpisodeRow]) -> None:
        """Log every row that is new or changed since the last call."""
        fresh = [
            (step, row) for step, row in enumerate(rows) if step >= len(self._logged) or self._logged[step] is not row
        ]
        if not fresh:
            return
        running = running_points(rows)
        points: list[Point] = [point for step, row in fresh for point in episode_points(step, row)]
        points += [point for means in running[self._running :] for point in means]
        write_points(self.client, self.run_id, points)
        self._logged, self._running = list(rows), len(running)

    def log_traces(self) -> None:
        """Log the trace of every episode logged so far that has none."""
        if not self.traces:
            return
        if self._traces is None:
            self._traces = TraceLog(self.client, self.experiment_id, self.run_id, self.cell_dir)
        self._traces.log(self._logged)

    def close(self, summary: Summary, status: str) -> None:
        """Log aggregates and artifacts and end the run.

        Args:
            summary: the cell's aggregates.
            status: ``FINISHED``, ``FAILED`` or ``KILLED``.
        """
        write_points(self.client, self.run_id, summary_points(summary, self._logged))
        self.client.log_dict(self.run_id, episodes_table(self._logged), "episodes.json")
        self.client.set_tag(
            self.run_id, "mlflow.loggedArtifacts", json.dumps([{"path": "episodes.json", "type": "table"}])
        )
        for name in ARTIFACTS:
            if (self.cell_dir / name).exists():
                self.client.log_artifact(self.run_id, str(self.cell_dir / name))
        self.client.set_terminated(self.run_id, status=status)
