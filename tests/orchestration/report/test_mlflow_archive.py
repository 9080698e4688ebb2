"""Cells out of MLflow are the cells that went in."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from mlflow_store import Store
from report_cells import make_cell

from skillarena.conf.errors import ConfigError, TrackingError
from skillarena.orchestration.report.archive import load
from skillarena.orchestration.report.mlflow_archive import fetch
from skillarena.orchestration.sweep_file import write_sweep
from skillarena.orchestration.sweep_run import SweepRun
from skillarena.orchestration.tracking_sync import sync

pytestmark = pytest.mark.slow

SWEEP, SECOND = "5eed00000001", "5eed00000002"


class Sweeps:
    """Two sweeps of one experiment that share a cell, and a cell of another experiment."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.store = Store(root, "arena")
        self.vector, self.none, self.random = (self._cell(name, "arena") for name in ("vector", "none", "random"))
        self.lonely = self._cell("vanilla", "elsewhere")
        files = [self._sweep(SWEEP, self.vector, self.none), self._sweep(SECOND, self.vector, self.random)]
        self.run_ids = [synced.run_id for path in [*files, self.lonely] for synced in sync([path])]

    def _cell(self, selector: str, experiment: str) -> Path:
        options = {"tracking.uri": self.store.uri, "tracking.experiment": experiment}
        return make_cell(self.root, selector=selector, rewards=(100.0, 0.0, "lost", None), options=options)

    def _sweep(self, name: str, *cells: Path) -> Path:
        return write_sweep(self.root, name, [SimpleNamespace(directory=cell) for cell in cells])  # type: ignore[misc]


@pytest.fixture(scope="module")
def sweeps(tmp_path_factory: pytest.TempPathFactory) -> Sweeps:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SweepRun, "log_report", lambda _: None)  # not what this is about
        return Sweeps(tmp_path_factory.mktemp("out"))


def _names(paths: list[Path]) -> set[str]:
    return {path.name for path in paths}


def test_a_sweep_comes_back_as_it_was(sweeps: Sweeps, tmp_path: Path) -> None:
    fetched = fetch(SWEEP, sweeps.store.uri, tmp_path / "new")
    assert _names(fetched) == {sweeps.vector.name, sweeps.none.name}
    for folder in fetched:
        original = sweeps.root / "cells" / folder.name
        for name in ("config.json", "episodes.jsonl", "trajectories.jsonl"):
            assert (folder / name).read_bytes() == (original / name).read_bytes()
    assert {path.name for path in (tmp_path / "new").iterdir()} == _names(fetched)


def test_a_cell_of_two_sweeps_belongs_to_both(sweeps: Sweeps, tmp_path: Path) -> None:
    fetched = fetch(SECOND, sweeps.store.uri, tmp_path)
    assert _names(fetched) == {sweeps.vector.name, sweeps.random.name}


def test_a_sweep_is_known_by_its_runs_name_and_id(sweeps: Sweeps, tmp_path: Path) -> None:
    run: Any = next(run for run in sweeps.store.runs() if run.data.tags.get("skillarena.sweep") == SWEEP)
    for number, reference in enumerate((run.info.run_name, run.info.run_id)):
        fetched = fetch(reference, sweeps.store.uri, tmp_path / str(number))
        assert _names(fetched) == {sweeps.vector.name, sweeps.none.name}


def test_an_experiment_is_all_its_cells(sweeps: Sweeps, tmp_path: Path) -> None:
    assert _names(fetch("arena", sweeps.store.uri, tmp_path / "arena")) == {
        cell.name for cell in (sweeps.vector, sweeps.none, sweeps.random)
    }
    assert _names(fetch("elsewhere", sweeps.store.uri, tmp_path / "elsewhere")) == {sweeps.lonely.name}


def test_one_cell_is_known_by_its_run(sweeps: Sweeps, tmp_path: Path) -> None:
    assert _names(fetch(sweeps.run_ids[-1], sweeps.store.uri, tmp_path)) == {sweeps.lonely.name}


def test_the_store_of_the_output_folder_is_the_default(
    sweeps: Sweeps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert len(fetch(SWEEP, None, tmp_path / "a", output_dir=str(sweeps.root))) == 2
    monkeypatch.setenv("MLFLOW_TRACKING_URI", sweeps.store.uri)
    assert len(fetch(SWEEP, None, tmp_path / "b", output_dir=str(tmp_path))) == 2


def test_an_unknown_name_gets_the_nearest_known_one(sweeps: Sweeps, tmp_path: Path) -> None:
    with pytest.raises(TrackingError, match="did you mean 'elsewhere'"):
        fetch("elsewere", sweeps.store.uri, tmp_path)


def test_a_name_that_fits_several_runs_is_not_guessed(sweeps: Sweeps, tmp_path: Path) -> None:
    other = sweeps.store.client.create_experiment("twin")
    tags = {"skillarena.sweep": "5eed0000aaaa", "mlflow.runName": "same"}
    ids = [sweeps.store.client.create_run(other, tags=tags).info.run_id for _ in range(2)]
    with pytest.raises(TrackingError, match="2 runs are called 'same'") as caught:
        fetch("same", sweeps.store.uri, tmp_path)
    assert all(run_id in str(caught.value) for run_id in ids)
    sweeps.store.client.delete_experiment(other)


def test_cells_without_records_are_named_when_they_are_read(sweeps: Sweeps, tmp_path: Path) -> None:
    client, experiment = sweeps.store.client, sweeps.store.client.create_experiment("running")
    tags = {"skillarena.sweep": "5eed0000bbbb", "mlflow.runName": "sweep under way"}
    parent = client.create_run(experiment, tags=tags).info.run_id
    started, unknown = "a" * 64, "b" * 64
    client.create_run(experiment, tags={"skillarena.cell_id": started})
    client.log_dict(parent, {"sweep": "5eed0000bbbb", "cells": [started, unknown]}, "sweep.json")
    fetched = fetch("sweep under way", sweeps.store.uri, tmp_path)
    assert _names(fetched) == {"a" * 12, "b" * 12}
    archive = load([*fetched, sweeps.vector])
    assert len(archive.cells) == 1
    assert len(archive.problems) == 2


@pytest.mark.parametrize("hostile", ["../../outside", "/tmp/outside", "..", "a'b"])
def test_what_a_store_says_leads_to_no_other_place(sweeps: Sweeps, tmp_path: Path, hostile: str) -> None:
    client = sweeps.store.client
    experiment = client.create_experiment(f"hostile {hostile}")
    run_id = client.create_run(experiment, tags={"skillarena.cell_id": "c" * 64, "mlflow.runName": hostile}).info.run_id
    client.create_run(experiment, tags={"skillarena.cell_id": hostile})
    config = {"identity": {}, "settings": {}, "tasks": [], "cell": {"name": hostile}}
    client.log_dict(run_id, config, "config.json")
    folder = tmp_path / "deep" / "deeper"
    (fetched,) = fetch(f"hostile {hostile}", sweeps.store.uri, folder)
    assert fetched.resolve().parent == folder.resolve()
    assert [path.name for path in tmp_path.iterdir()] == ["deep"]


def test_a_store_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    file = tmp_path / "mlflow.db"
    with pytest.raises(TrackingError, match="there is no MLflow store"):
        fetch(SWEEP, f"sqlite:///{file}", tmp_path / "new")
    assert not file.exists()


def test_an_address_with_a_password_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        fetch(SWEEP, "http://someone:secret-word@127.0.0.1:9", tmp_path)
    assert "secret-word" not in str(caught.value)


def test_nothing_is_written_over(sweeps: Sweeps, tmp_path: Path) -> None:
    fetch(SWEEP, sweeps.store.uri, tmp_path)
    with pytest.raises(TrackingError, match="exists already"):
        fetch(SWEEP, sweeps.store.uri, tmp_path)
