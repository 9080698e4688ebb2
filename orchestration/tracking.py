"""MLflow as a mirror of the ledger: one writer, explicit run ids, never in an episode's way.

Every cell is one run, found again by its cell id. Episodes are logged by their position in the ledger with the time
they finished, so logging the same row twice leaves one point, and a store that was away catches up from the ledger.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path

from skillarena.orchestration.cell_run import CellRun
from skillarena.orchestration.ledger import EpisodeRow
from skillarena.orchestration.settings import TrackingSettings
from skillarena.orchestration.summary import Summary
from skillarena.orchestration.sweep_run import SweepRun
from skillarena.orchestration.tracking_points import CellEnd
from skillarena.orchestration.tracking_store import connect, first_line

log = logging.getLogger(__name__)


class Mirror:
    """A background thread that keeps the runs of a sweep's cells up to date with their ledgers."""

    def __init__(self, settings: TrackingSettings, output_dir: str, sweep_name: str | None) -> None:
        self._settings = settings
        self._output_dir = output_dir
        self._sweep_name = sweep_name
        self._sweep: SweepRun | None = None
        self._runs: dict[Path, CellRun] = {}
        self._rows: dict[Path, dict[str, EpisodeRow]] = {}
        self._ends: dict[Path, tuple[Summary, str]] = {}
        self._closed: dict[Path, CellEnd] = {}
        self._stop = threading.Event()
        self._done = threading.Event()
        self._report_wanted = False
        self._stage = "records"
        self.problem = ""
        """Why the store is behind; empty when it is not."""
        self._thread = threading.Thread(target=self._run, name="mlflow-mirror", daemon=True)

    def start(self, ledgers: dict[Path, dict[str, EpisodeRow]]) -> None:
        """Begin to mirror.

        Args:
            ledgers: cell folder to the ledger's live rows.
        """
        self._rows = dict(ledgers)
        self._thread.start()

    def end_cell(self, cell_dir: Path, summary: Summary, status: str) -> None:
        """Let the cell's run end with these aggregates at the next flush."""
        self._ends[cell_dir] = (summary, status)

    def stop(self, report: bool = True) -> bool:
        """Flush and stop. Returns False when the store could not take everything in time (see ``problem``).

        Args:
            report: make a sweep's report, too, and keep it with the sweep's run.
        """
        self._report_wanted = report
        self._stop.set()
        if not self._done.wait(self._settings.timeout_s):
            self.problem = self.problem or f"{self._stage}: not finished after {self._settings.timeout_s:g} s"
        return not self.problem

    def _run(self) -> None:
        while True:
            stopping = self._stop.wait(self._settings.flush_every_s)
            problem = "; ".join(self._flush(stopping))
            if problem and not self.problem and not stopping:
                log.warning("MLflow is behind (%s); the ledger keeps everything", problem)
            self.problem = problem
            if stopping:
                break
        self._done.set()

    def _flush(self, stopping: bool) -> list[str]:
        """Bring the store up to date; returns what went wrong.

        Any fault of the store must leave the episodes alone; it is shown at the end. What comes after the records can
        fail by itself.
        """
        stages: dict[str, Callable[[], None]] = {
            "records": lambda: self._log_records(stopping),
            "traces": self._log_traces,
        }
        if stopping and self._report_wanted:
            stages["report"] = self._log_report
        problems: list[str] = []
        for stage, work in stages.items():
            self._stage = stage
            try:
                work()
            except Exception as error:
                problems.append(f"{stage}: {first_line(error)}")
                if stage == "records":
                    break
        return problems

    def _log_records(self, stopping: bool) -> None:
        if not self._runs:
            self._runs = self._connect()
        for path, run in self._runs.items():
            if not run.opened:
                run.open()
            run.log_rows(tuple(self._rows[path].values()))
        for path in list(self._ends):
            summary, status = self._ends[path]
            self._runs[path].close(summary, status)
            self._closed[path] = CellEnd(summary.expected, tuple(self._rows[path].values()), status)
            del self._ends[path]
        if stopping and self._sweep is not None:
            self._sweep.close(list(self._closed.values()))

    def _connect(self) -> dict[Path, CellRun]:
        client, experiment_id = connect(self._settings, self._output_dir)
        parent = None
        if self._sweep_name is not None:
            self._sweep = SweepRun(client, experiment_id, self._sweep_name, list(self._rows))
            self._sweep.open()
            parent = self._sweep.parent
        traces = self._settings.traces
        return {path: CellRun(client, experiment_id, path, parent, traces) for path in self._rows}

    def _log_traces(self) -> None:
        for run in self._runs.values():
            run.log_traces()

    def _log_report(self) -> None:
        if self._sweep is not None:
            self._sweep.log_report()
