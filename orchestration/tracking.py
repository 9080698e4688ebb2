"""MLflow as a mirror of the ledger: one writer, explicit run ids, never in an episode's way.

Every cell is one run, found again by its cell id. Episodes are logged by their position in the ledger with the time
they finished, so logging the same row twice leaves one point, and a store that was away catches up from the ledger.
"""

from __future__ import annotations

import json
import logging
import os
import re
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillarena.conf.errors import TrackingError
from skillarena.envs.interface import EndReason
from skillarena.orchestration.ledger import EpisodeRow, read_config, read_rows
from skillarena.orchestration.settings import TrackingSettings
from skillarena.orchestration.summary import MEASURES, Summary

if TYPE_CHECKING:
    from mlflow import MlflowClient

log = logging.getLogger(__name__)

CELL_TAG = "skillarena.cell_id"
_CHUNK = 40  # episodes a batch; a batch holds at most 1000 metrics


def tracking_uri(settings: TrackingSettings, output_dir: str) -> str:
    """The configured URI, else MLflow's own variable, else the SQLite file in the output folder."""
    return (
        settings.uri
        or os.environ.get("MLFLOW_TRACKING_URI")
        or f"sqlite:///{Path(output_dir).absolute() / 'mlflow.db'}"
    )


def connect(settings: TrackingSettings, output_dir: str) -> tuple[MlflowClient, str]:
    """A client and the id of the experiment, created on first use.

    Raises:
        TrackingError: the store cannot be reached or opened.
    """
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "20")
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException

    for noisy, level in {"mlflow": logging.WARNING, "alembic": logging.WARNING, "urllib3": logging.ERROR}.items():
        logging.getLogger(noisy).setLevel(level)  # after the import, which sets its own levels
    uri = tracking_uri(settings, output_dir)
    local = uri.startswith("sqlite:")
    try:
        if local:
            Path(output_dir).mkdir(parents=True, exist_ok=True)
        client = MlflowClient(tracking_uri=uri)
        experiment = client.get_experiment_by_name(settings.experiment)
        if experiment is not None:
            return client, str(experiment.experiment_id)
        artifacts = (Path(output_dir).absolute() / "mlartifacts").as_uri() if local else None
        return client, str(client.create_experiment(settings.experiment, artifact_location=artifacts))
    except (MlflowException, OSError) as error:
        raise TrackingError(
            f"tracking store {redacted(uri)} does not answer: {_first_line(error)}",
            "check tracking.uri, or set tracking.enabled=false and run `skillarena sync` later",
        ) from error


def redacted(uri: str) -> str:
    """A URI without user name, password and query."""
    uri = uri.partition("?")[0]
    scheme, separator, rest = uri.partition("://")
    host = rest.rpartition("@")[2] if "@" in rest.partition("/")[0] else rest
    return f"{scheme}{separator}{host}"


@dataclass
class CellRun:
    """The MLflow run of one cell folder."""

    client: MlflowClient
    experiment_id: str
    cell_dir: Path
    parent_run_id: str | None = None
    run_id: str = ""
    opened: bool = False
    """The run exists with all its tags and parameters."""
    _logged: list[EpisodeRow] = field(default_factory=list)

    def open(self) -> None:
        """Find the cell's run or create it, with its parameters and tags."""
        config = read_config(self.cell_dir)
        cell = config["cell"]
        found = self.client.search_runs(
            [self.experiment_id], filter_string=f"tags.`{CELL_TAG}` = '{cell['id']}'", max_results=1
        )
        mark = " [simulated]" if cell["simulated"] and "simulated" not in cell["name"] else ""
        tags = {
            CELL_TAG: cell["id"],
            "mlflow.runName": cell["name"] + mark,
            "mlflow.source.name": "skillarena",
            "simulated": str(cell["simulated"]).lower(),
            **{key: value for key, value in cell["axes"].items() if value},
        }
        if self.parent_run_id:
            tags["mlflow.parentRunId"] = self.parent_run_id
        if found:
            self.run_id = found[0].info.run_id
            self.client.update_run(self.run_id, status="RUNNING")
            for key, value in tags.items():
                self.client.set_tag(self.run_id, key, value)
        else:
            self.run_id = self.client.create_run(self.experiment_id, tags=tags).info.run_id
        from mlflow.entities import Param

        parameters = [Param(key, str(value)[:6000]) for key, value in _flat(config["identity"]).items()]
        self.client.log_batch(self.run_id, params=parameters)
        self.opened = True

    def log_rows(self, rows: Sequence[EpisodeRow]) -> None:
        """Log every row that is new or changed since the last call."""
        fresh = [
            (step, row) for step, row in enumerate(rows) if step >= len(self._logged) or self._logged[step] is not row
        ]
        for start in range(0, len(fresh), _CHUNK):
            self.client.log_batch(
                self.run_id, metrics=[m for step, row in fresh[start : start + _CHUNK] for m in _metrics(step, row)]
            )
        self._logged = list(rows)

    def close(self, summary: Summary, status: str) -> None:
        """Log aggregates and artifacts and end the run.

        Args:
            summary: the cell's aggregates.
            status: ``FINISHED``, ``FAILED`` or ``KILLED``.
        """
        from mlflow.entities import Metric

        values: dict[str, float] = {
            "summary/coverage": summary.scored / summary.expected,
            "summary/episodes": summary.scored,
            "summary/infra_errors": summary.infra_errors,
        }
        values |= {f"outcome/{outcome}": summary.outcomes.get(outcome, 0) for outcome in EndReason}
        values |= {f"mark/{mark}": count for mark, count in summary.marks.items()}
        for name, estimate in summary.estimates.items():
            values[f"summary/{name}"] = estimate.mean
            if estimate.low is not None and estimate.high is not None:
                values[f"summary/{name}_ci95_low"] = estimate.low
                values[f"summary/{name}_ci95_high"] = estimate.high
        stamp = int(max((row.finished_at for row in self._logged), default=0.0) * 1000)
        self.client.log_batch(
            self.run_id, metrics=[Metric(key, float(value), stamp, 0) for key, value in values.items()]
        )
        self.client.log_dict(self.run_id, _table(self._logged), "episodes.json")
        self.client.set_tag(
            self.run_id, "mlflow.loggedArtifacts", json.dumps([{"path": "episodes.json", "type": "table"}])
        )
        for name in ("config.json", "summary.json", "episodes.jsonl", "trajectories.jsonl"):
            if (self.cell_dir / name).exists():
                self.client.log_artifact(self.run_id, str(self.cell_dir / name))
        self.client.set_terminated(self.run_id, status=status)


def sync(cell_dir: Path, settings: TrackingSettings, output_dir: str, summary: Summary) -> str:
    """Bring a cell's run up to date from its ledger; safe to repeat. Returns the run id. Raises ``TrackingError``."""
    from mlflow.exceptions import MlflowException

    client, experiment_id = connect(settings, output_dir)
    run = CellRun(client, experiment_id, cell_dir)
    try:
        run.open()
        run.log_rows(read_rows(cell_dir).rows)
        run.close(summary, "FINISHED" if summary.complete else "KILLED")
    except MlflowException as error:
        raise TrackingError(f"{cell_dir}: MLflow refused the records ({_first_line(error)})") from error
    return run.run_id


class Mirror:
    """A background thread that keeps the runs of a sweep's cells up to date with their ledgers."""

    def __init__(self, settings: TrackingSettings, output_dir: str, sweep_name: str | None) -> None:
        self._settings = settings
        self._output_dir = output_dir
        self._sweep_name = sweep_name
        self._runs: dict[Path, CellRun] = {}
        self._rows: dict[Path, dict[str, EpisodeRow]] = {}
        self._ends: dict[Path, tuple[Summary, str]] = {}
        self._stop = threading.Event()
        self._done = threading.Event()
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

    def stop(self) -> bool:
        """Flush and stop. Returns False when the store could not take everything in time (see ``problem``)."""
        self._stop.set()
        if not self._done.wait(self._settings.timeout_s):
            self.problem = self.problem or f"not finished after {self._settings.timeout_s:g} s"
        return not self.problem

    def _run(self) -> None:
        while True:
            stopping = self._stop.wait(self._settings.flush_every_s)
            try:
                self._flush()
                self.problem = ""
            except Exception as error:  # any fault of the store must leave the episodes alone; it is shown at the end
                if not self.problem:
                    log.warning("MLflow is behind (%s); the ledger keeps everything", _first_line(error))
                self.problem = _first_line(error)
            if stopping:
                break
        self._done.set()

    def _flush(self) -> None:
        if not self._runs:
            client, experiment_id = connect(self._settings, self._output_dir)
            parent = _sweep_run(client, experiment_id, self._sweep_name) if self._sweep_name else None
            self._runs = {path: CellRun(client, experiment_id, path, parent) for path in self._rows}
        for path, run in self._runs.items():
            if not run.opened:
                run.open()
            run.log_rows(tuple(self._rows[path].values()))
        for path in list(self._ends):
            summary, status = self._ends[path]
            self._runs[path].close(summary, status)
            del self._ends[path]
        if self._stop.is_set() and self._sweep_name:
            for run in self._runs.values():
                if run.parent_run_id:
                    run.client.set_terminated(run.parent_run_id)
                    break


def _sweep_run(client: MlflowClient, experiment_id: str, name: str) -> str:
    """The parent run of a sweep, found by its name or created."""
    found = client.search_runs([experiment_id], filter_string=f"tags.`skillarena.sweep` = '{name}'", max_results=1)
    if found:
        client.update_run(found[0].info.run_id, status="RUNNING")
        return str(found[0].info.run_id)
    tags = {"skillarena.sweep": name, "mlflow.runName": f"sweep {name}", "mlflow.source.name": "skillarena"}
    return str(client.create_run(experiment_id, tags=tags).info.run_id)


def _metrics(step: int, row: EpisodeRow) -> list[Any]:
    from mlflow.entities import Metric

    stamp = int(row.finished_at * 1000)
    lost = row.outcome == EndReason.INFRA_ERROR
    points = [Metric("episode/infra_error", float(lost), stamp, step)]
    if not lost:
        values = {name: measure(row) for name, measure in MEASURES.items()}
        points += [Metric(f"episode/{name}", value, stamp, step) for name, value in values.items() if value is not None]
    return points


def _table(rows: Sequence[EpisodeRow]) -> dict[str, Any]:
    """Rows in the form of an MLflow table artifact."""
    plain = [asdict(row) for row in rows]
    columns = list(plain[0]) if plain else []
    flat = [[", ".join(value) if isinstance(value, tuple) else value for value in row.values()] for row in plain]
    return {"columns": columns, "data": flat}


def _flat(plain: Any, path: str = "") -> dict[str, Any]:
    if not isinstance(plain, dict):
        return {path: plain}
    flat: dict[str, Any] = {}
    for name, inner in plain.items():
        flat |= _flat(inner, f"{path}.{name}" if path else name)
    return flat


def _first_line(error: BaseException) -> str:
    line = (str(error).splitlines() or [type(error).__name__])[0][:300]
    return re.sub(r"//[^/@\s]*@", "//", line)  # client libraries quote URLs with the credentials in them
