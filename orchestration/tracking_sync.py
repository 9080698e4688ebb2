"""Catching up: MLflow from ledgers, for example after the tracking server was away. Safe to repeat."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from skillarena.conf.errors import TrackingError
from skillarena.envs.interface import EndReason
from skillarena.orchestration.cell_run import PARENT_TAG, CellRun, Parent
from skillarena.orchestration.ledger import read_config, read_rows
from skillarena.orchestration.report.archive import cell_folders, read_cell_config
from skillarena.orchestration.settings import validate
from skillarena.orchestration.summary import summarise
from skillarena.orchestration.sweep_file import read_sweep, read_sweep_name
from skillarena.orchestration.sweep_run import SweepRun
from skillarena.orchestration.tracking_points import CellEnd
from skillarena.orchestration.tracking_store import connect, first_line, with_uri
from skillarena.orchestration.tracking_tags import CELL_TAG
from skillarena.orchestration.tracking_write import find_run

if TYPE_CHECKING:
    from mlflow import MlflowClient


class Synced(NamedTuple):
    """One folder or file that MLflow is up to date with."""

    path: Path
    run_id: str


def sync(paths: Sequence[Path], uri: str | None = None) -> Iterator[Synced]:
    """Bring runs up to date.

    The cells of a sweep's file are nested under that sweep, whose sums and report are renewed. Other cells stay under
    the sweep they are under; those under none go under the newest one that names them.

    Args:
        paths: cell folders, folders of them, output folders or sweep files.
        uri: tracking URI instead of the one in the cells' settings.

    Raises:
        ConfigError: ``uri`` holds a password.
        DataError: not a cell's folder or a sweep's file.
        TrackingError: the store does not take the records.
    """
    for path in paths:
        if path.is_file():
            yield from _sync_sweep(path, uri)
        else:
            yield from _sync_cells(cell_folders([path]), uri)


def _sync_sweep(file: Path, uri: str | None) -> Iterator[Synced]:
    folders = read_sweep(file)
    for folder in folders:
        read_cell_config(folder)
    store = _Store.of(folders[0], uri)
    with _refusals(file):
        sweep = store.sweep(file)
        sweep.open()
    for folder in sweep.cell_dirs:
        with _refusals(folder):
            run_id = _fill(store.run(folder, sweep.parent))
        yield Synced(folder, run_id)
    with _refusals(file):
        sweep.close([_end_of(folder) for folder in sweep.cell_dirs])
        sweep.log_report()
    yield Synced(file, sweep.run_id)


def _sync_cells(folders: Sequence[Path], uri: str | None) -> Iterator[Synced]:
    joined: dict[Path, SweepRun] = {}
    for folder in folders:
        store = _Store.of(folder, uri)
        file = _newest_sweep(folder)
        with _refusals(folder):
            parent = None
            if file is not None and not store.nested(folder):
                if file not in joined:
                    joined[file] = store.sweep(file)
                    joined[file].open()
                parent = joined[file].parent
            run_id = _fill(store.run(folder, parent))
        yield Synced(folder, run_id)
    for file, sweep in joined.items():
        with _refusals(file):
            sweep.close([_end_of(folder) for folder in sweep.cell_dirs])


def _fill(run: CellRun) -> str:
    """Bring one cell's run up to date and end it; returns its id."""
    config, end = read_config(run.cell_dir), _end_of(run.cell_dir)
    task_ids = [task["id"] for task in config["tasks"]]
    run.open()
    run.log_rows(end.rows)
    run.log_traces()
    run.close(summarise(end.rows, task_ids, int(config["settings"]["run"]["bootstrap_resamples"])), end.status)
    return run.run_id


def _end_of(cell_dir: Path) -> CellEnd:
    rows, expected = read_rows(cell_dir).rows, len(read_config(cell_dir)["tasks"])
    scored = sum(row.outcome != EndReason.INFRA_ERROR for row in rows)
    return CellEnd(expected, rows, "FINISHED" if scored == expected else "KILLED")


def _newest_sweep(cell_dir: Path) -> Path | None:
    """The file of the sweep that ran last of those that the cell belongs to."""
    folder = cell_dir.resolve()
    files = [file for file in folder.parent.parent.glob("sweeps/*.json") if folder in read_sweep(file)]
    return max(files, key=lambda file: (file.stat().st_mtime_ns, file.name), default=None)


@dataclass(frozen=True)
class _Store:
    """Where a cell's records go."""

    client: MlflowClient
    experiment_id: str
    traces: bool

    @staticmethod
    def of(cell_dir: Path, uri: str | None) -> _Store:
        settings = validate(read_cell_config(cell_dir)["settings"])
        tracking = with_uri(settings.tracking, uri)
        return _Store(*connect(tracking, settings.output_dir), tracking.traces)

    def run(self, cell_dir: Path, parent: Parent | None) -> CellRun:
        return CellRun(self.client, self.experiment_id, cell_dir, parent, self.traces)

    def sweep(self, file: Path) -> SweepRun:
        return SweepRun(self.client, self.experiment_id, read_sweep_name(file), read_sweep(file))

    def nested(self, cell_dir: Path) -> bool:
        """The cell's run exists and has a parent."""
        run = find_run(self.client, self.experiment_id, (CELL_TAG, read_config(cell_dir)["cell"]["id"]))
        return run is not None and PARENT_TAG in run.data.tags


@contextmanager
def _refusals(path: Path) -> Iterator[None]:
    """What the store says against a record, as an error of this project."""
    from mlflow.exceptions import MlflowException

    try:
        yield
    except (MlflowException, NotImplementedError) as error:
        raise TrackingError(f"{path}: MLflow refused the records ({first_line(error)})") from error
