"""Cells out of MLflow as folders, so that a report can be made where the output folder is not."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import orjson

from skillarena.conf.errors import DataError, TrackingError, nearest
from skillarena.orchestration.cell_run import ARTIFACTS
from skillarena.orchestration.cells import folder_name
from skillarena.orchestration.ledger import read_config
from skillarena.orchestration.settings import TrackingSettings
from skillarena.orchestration.sweep_run import CELLS_FILE
from skillarena.orchestration.tracking_store import (
    SQLITE,
    first_line,
    make_client,
    redacted,
    search_runs,
    tracking_uri,
    with_uri,
)
from skillarena.orchestration.tracking_tags import CELL_TAG, SWEEP_TAG

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

log = logging.getLogger(__name__)

_SHOWN = 3  # of several runs that one name fits


def fetch(reference: str, uri: str | None, folder: Path, output_dir: str = "outputs") -> list[Path]:
    """Download the cells that a name stands for.

    Args:
        reference: name or run id of a sweep, name of an experiment (all of its cells), or name, id or run id of a cell.
        uri: tracking URI without password; None for ``MLFLOW_TRACKING_URI``, else the store in ``output_dir``.
        folder: where to put them; must hold none of them yet.
        output_dir: where a run's own store lies.

    Returns:
        The cells' folders, sorted. Those of cells whose records are not in MLflow (yet) do not exist: whoever reads
        them says so.

    Raises:
        ConfigError: ``uri`` holds a password.
        TrackingError: the store does not answer, or knows nothing of that name.
    """
    chosen = tracking_uri(with_uri(TrackingSettings.model_validate({}), uri), output_dir)
    with _refusals(chosen):
        _check_file(chosen)
        store = _Store.open(chosen)
        wanted = store.cells(reference)
        folder.mkdir(parents=True, exist_ok=True)
        return sorted(store.download(cell_id, run, folder) for cell_id, run in wanted.items())


def _check_file(uri: str) -> None:
    """MLflow would make a new, empty store."""
    path = uri.removeprefix(SQLITE)
    if path != uri and not Path(path).exists():
        raise TrackingError(
            f"there is no MLflow store {path}", "give its address with --uri, or set MLFLOW_TRACKING_URI"
        )


@contextmanager
def _refusals(uri: str) -> Iterator[None]:
    from mlflow.exceptions import MlflowException

    try:
        yield
    except (MlflowException, OSError) as error:
        raise TrackingError(
            f"tracking store {redacted(uri)}: {first_line(error)}", "check the address and that its artifacts are there"
        ) from error


@dataclass(frozen=True)
class _Store:
    """Reads experiments, sweeps and cells."""

    client: MlflowClient
    experiments: dict[str, str]
    """Ids by name."""

    @staticmethod
    def open(uri: str) -> _Store:
        client = make_client(uri)
        experiments: dict[str, str] = {}
        token: str | None = None
        while True:
            page = client.search_experiments(page_token=token)
            experiments |= {experiment.name: str(experiment.experiment_id) for experiment in page}
            token = page.token
            if not token:
                return _Store(client, experiments)

    def cells(self, reference: str) -> dict[str, Run | None]:
        """Runs by cell id; None for a cell of a sweep that has no run."""
        ids = list(self.experiments.values())
        sweeps = self._tagged(ids, SWEEP_TAG)
        if sweep := _the_one(reference, SWEEP_TAG, sweeps):
            return self._cells_of(sweep)
        if reference in self.experiments:
            found = self._tagged([self.experiments[reference]], CELL_TAG)
            if not found:
                raise TrackingError(f"experiment {reference!r} holds no cell of this project", "give another name")
            return {run.data.tags[CELL_TAG]: run for run in found}
        cells = self._tagged(ids, CELL_TAG)
        if cell := _the_one(reference, CELL_TAG, cells):
            return {cell.data.tags[CELL_TAG]: cell}
        names = [*self.experiments, *(name for run in (*sweeps, *cells) for name in _names(run))]
        raise TrackingError(
            f"MLflow knows no sweep, experiment or cell {reference!r}{nearest(reference, names)}",
            "give the name or run id of a sweep as `mlflow ui` shows it, or the name of an experiment",
        )

    def _tagged(self, experiment_ids: list[str], tag: str) -> list[Run]:
        if not experiment_ids:
            return []
        runs = search_runs(self.client, experiment_ids, f"tags.`{tag}` LIKE '%'")
        return [run for run in runs if re.fullmatch(r"[0-9a-f]{12,64}", run.data.tags[tag])]

    def _cells_of(self, sweep: Run) -> dict[str, Run | None]:
        try:
            with TemporaryDirectory() as folder:
                path = self.client.download_artifacts(sweep.info.run_id, CELLS_FILE, folder)
                ids = [str(cell_id) for cell_id in orjson.loads(Path(path).read_bytes())["cells"]]
        except (orjson.JSONDecodeError, KeyError, TypeError) as error:
            raise TrackingError(
                f"run {sweep.info.run_id}: {CELLS_FILE} does not list the sweep's cells",
                "run `skillarena sync` on the sweep's file again",
            ) from error
        known = {run.data.tags[CELL_TAG]: run for run in self._tagged([sweep.info.experiment_id], CELL_TAG)}
        return {cell_id: known.get(cell_id) for cell_id in ids if re.fullmatch(r"[0-9a-f]{12,64}", cell_id)}

    def download(self, cell_id: str, run: Run | None, folder: Path) -> Path:
        """One cell's files, under names that are fixed here: what a store says leads to no other place."""
        there = set()
        if run is not None:
            there = {item.path for item in self.client.list_artifacts(run.info.run_id)}
        if run is None or "config.json" not in there:
            return folder / cell_id[:12]
        with TemporaryDirectory(dir=folder, prefix=".fetching-") as part:
            for name in ARTIFACTS:
                if name in there:
                    self.client.download_artifacts(run.info.run_id, name, part)
            target = folder / f"{_folder_name(Path(part))}-{cell_id[:12]}"
            if target.exists():
                raise TrackingError(f"{target} exists already", "give a new folder")
            target.mkdir()
            for file in Path(part).iterdir():
                file.rename(target / file.name)
        return target


def _the_one(reference: str, tag: str, runs: Sequence[Run]) -> Run | None:
    """The run that a name or id fits; refuses to choose between several."""
    fitting = [run for run in runs if reference in (*_names(run), run.data.tags[tag])]
    if len(fitting) > 1:
        shown = ", ".join(run.info.run_id for run in fitting[:_SHOWN])
        raise TrackingError(f"{len(fitting)} runs are called {reference!r}: {shown}", "give the run id of one of them")
    return fitting[0] if fitting else None


def _names(run: Run) -> tuple[str, ...]:
    return (str(run.info.run_name), str(run.info.run_id))


def _folder_name(cell_dir: Path) -> str:
    """As the cell's folder was called where it was run."""
    try:
        cell: dict[str, Any] = read_config(cell_dir)["cell"]
        name = str(cell["name"])
    except (DataError, KeyError, TypeError):  # reading the cell will say what is wrong with it
        name = "cell"
    return folder_name(name)
