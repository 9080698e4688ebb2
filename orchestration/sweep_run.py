"""The MLflow run of a sweep, under which those of its cells are nested."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from skillarena.orchestration.cell_run import Parent
from skillarena.orchestration.ledger import read_config
from skillarena.orchestration.tracking_points import CellEnd, sweep_points
from skillarena.orchestration.tracking_tags import SWEEP_TAG, sweep_params, sweep_tags
from skillarena.orchestration.tracking_write import open_run, write_points

if TYPE_CHECKING:
    from mlflow import MlflowClient

CELLS_FILE = "sweep.json"
"""Artifact that names the sweep's cells: one that belongs to several sweeps is nested under the last one only."""
REPORT_FOLDER = "report"


@dataclass
class SweepRun:
    """The parent run of a sweep, found by the sweep's name or created."""

    client: MlflowClient
    experiment_id: str
    name: str
    cell_dirs: Sequence[Path]
    run_id: str = field(default="", init=False)

    @property
    def parent(self) -> Parent:
        """What the runs of cells are nested under, once this is open."""
        return Parent(self.run_id, self.name)

    def open(self) -> None:
        """Find the run or create it, with what the sweep holds."""
        configs = [read_config(folder) for folder in self.cell_dirs]
        tags, params = sweep_tags(self.name, configs), sweep_params(configs)
        self.run_id = open_run(self.client, self.experiment_id, (SWEEP_TAG, self.name), tags, params)
        ids = sorted(config["cell"]["id"] for config in configs)
        self.client.log_dict(self.run_id, {"sweep": self.name, "cells": ids}, CELLS_FILE)

    def close(self, cells: Sequence[CellEnd]) -> None:
        """Log sums over all cells of the sweep and end its run, with the worst status that a cell has."""
        write_points(self.client, self.run_id, sweep_points(cells))
        found = {cell.status for cell in cells}
        status = next((status for status in ("FAILED", "KILLED") if status in found), "FINISHED")
        self.client.set_terminated(self.run_id, status=status)

    def log_report(self) -> None:
        """Make the report on all cells and keep its page, tables and figures with the run."""
        from skillarena.orchestration.report.archive import load_played
        from skillarena.orchestration.report.report import build_report
        from skillarena.orchestration.report.report_files import write_report

        with TemporaryDirectory(prefix="skillarena-report-") as folder:
            archive = load_played(self.cell_dirs)
            write_report(build_report(archive), archive, Path(folder))
            self.client.log_artifacts(self.run_id, folder, REPORT_FOLDER)
