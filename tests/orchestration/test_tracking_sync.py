"""Catching up with ledgers: repeated without end, under the right sweep."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from mlflow_store import Store
from report_cells import make_cell

from skillarena.conf.errors import ConfigError, DataError
from skillarena.orchestration.sweep_file import write_sweep
from skillarena.orchestration.sweep_run import SweepRun
from skillarena.orchestration.tracking_sync import sync

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("out")


@pytest.fixture
def store(output: Path, request: pytest.FixtureRequest) -> Store:
    return Store(output, request.node.name)


def _cell(store: Store, root: Path, **changes: Any) -> Path:
    return make_cell(root, options={**store.options, **changes.pop("options", {})}, **changes)


def _sweep(root: Path, name: str, *cells: Path) -> Path:
    return write_sweep(root, name, [SimpleNamespace(directory=cell) for cell in cells])  # type: ignore[misc]


def _run_ids(paths: list[Path]) -> list[str]:
    return [synced.run_id for synced in sync(paths)]


def _parents(store: Store) -> dict[str, str | None]:
    """Name of the sweep each cell is nested under, by selector."""
    names = {run.info.run_id: run.data.tags["sweep"] for run in store.runs() if run.data.tags["kind"] == "sweep"}
    return {
        run.data.tags["selector"]: names.get(run.data.tags.get("mlflow.parentRunId", ""))
        for run in store.runs()
        if run.data.tags["kind"] == "cell"
    }


def test_every_episode_is_logged_once_however_often_it_is_repeated(tmp_path: Path, store: Store) -> None:
    cell = _cell(store, tmp_path, selector="vector", k=10, rewards=(0.0, 100.0, 50.0, None))
    first = _run_ids([cell])
    before = store.history(first[0], "running/reward")
    assert _run_ids([cell]) == first
    assert store.history(first[0], "episode/reward") == [(0, 0.0), (1, 100.0), (2, 50.0)]
    assert store.history(first[0], "running/reward") == before == [(0, 0.0), (1, 50.0), (2, 50.0)]
    (run,) = store.runs()
    assert run.data.metrics["summary/reward"] == 50.0
    assert run.data.metrics["summary/coverage"] == 0.75
    assert run.data.params["selector.k"] == run.data.tags["k"] == "10"
    assert run.data.tags["simulated"] == "true"
    assert "skillarena.version" in run.data.tags
    assert run.info.status == "KILLED"
    assert {"config.json", "episodes.json", "episodes.jsonl", "trajectories.jsonl"} <= store.artifacts(first[0])


def test_the_episode_table_loads_as_mlflow_table(tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store.uri)  # load_table searches the global store
    (run_id,) = _run_ids([_cell(store, tmp_path, rewards=(0.0, 100.0))])
    table = store.client.load_table(store.experiment_id, "episodes.json", run_ids=[run_id])
    assert list(table["reward"]) == [0.0, 100.0]
    assert list(table["skills"]) == ["set/first, set/second"] * 2


def test_a_sweeps_file_nests_its_cells_and_renews_sums_and_report(tmp_path: Path, store: Store) -> None:
    cells = [_cell(store, tmp_path, selector=selector) for selector in ("vector", "none")]
    file = _sweep(tmp_path, "a" * 12, *cells)
    first = _run_ids([file])
    assert _run_ids([file]) == first
    assert len(store.runs()) == 3
    assert _parents(store) == {"vector": "a" * 12, "none": "a" * 12}
    parent = store.run("sweep")
    assert parent.info.run_id == first[-1]
    assert parent.info.run_name == "sweep aaaaaa alfworld/valid_seen none+vector simulated"
    assert parent.data.metrics["sweep/episodes"] == 4
    assert parent.data.params["selector"] == "none, vector"
    assert parent.info.status == "FINISHED"
    assert "report/index.html" in store.artifacts(first[-1], "report")


@pytest.fixture
def no_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests that are about something else."""
    monkeypatch.setattr(SweepRun, "log_report", lambda _: None)


@pytest.mark.usefixtures("no_report")
def test_a_cell_of_two_sweeps_goes_under_the_one_whose_file_was_synced_last(tmp_path: Path, store: Store) -> None:
    shared, other = (_cell(store, tmp_path, selector=selector) for selector in ("vector", "none"))
    older, newer = _sweep(tmp_path, "a" * 12, shared), _sweep(tmp_path, "b" * 12, shared, other)
    _run_ids([newer])
    _run_ids([older])
    assert _parents(store) == {"vector": "a" * 12, "none": "b" * 12}


@pytest.mark.usefixtures("no_report")
def test_a_cell_alone_stays_where_it_is(tmp_path: Path, store: Store) -> None:
    cell = _cell(store, tmp_path, selector="vector")
    older, newer = _sweep(tmp_path, "a" * 12, cell), _sweep(tmp_path, "b" * 12, cell)
    os.utime(newer, (4e9, 4e9))
    _run_ids([older])
    _run_ids([cell])
    assert _parents(store) == {"vector": "a" * 12}


def test_a_cell_without_a_parent_goes_under_the_newest_sweep_that_names_it(tmp_path: Path, store: Store) -> None:
    cell, other = (_cell(store, tmp_path, selector=selector) for selector in ("vector", "none"))
    for age, name in enumerate(("a" * 12, "b" * 12)):
        os.utime(_sweep(tmp_path, name, cell), (2e9 + age, 2e9 + age))
    os.utime(_sweep(tmp_path, "c" * 12, other), (3e9, 3e9))
    _run_ids([tmp_path / "cells"])
    assert _parents(store) == {"vector": "b" * 12, "none": "c" * 12}
    assert {run.info.status for run in store.runs()} == {"FINISHED"}


def test_a_cell_of_no_sweep_has_no_parent(tmp_path: Path, store: Store) -> None:
    _run_ids([_cell(store, tmp_path, selector="vector")])
    assert _parents(store) == {"vector": None}


def test_traces_are_caught_up_with_where_the_cell_wants_them(tmp_path: Path, store: Store) -> None:
    cell = _cell(store, tmp_path, rewards=(0.0, 100.0), options={"tracking.traces": True})
    (run_id,) = _run_ids([cell])
    _run_ids([cell])
    assert len(store.traces(run_id)) == 2


def test_an_address_with_a_password_is_refused(tmp_path: Path, store: Store) -> None:
    cell = _cell(store, tmp_path)
    with pytest.raises(ConfigError, match="MLFLOW_TRACKING_PASSWORD") as caught:
        list(sync([cell], "http://someone:secret-word@127.0.0.1:9"))
    assert "secret-word" not in str(caught.value)


def test_a_file_that_is_no_sweep_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "sweep.json"
    file.write_text('{"sweep": "x", "cells": []}')
    with pytest.raises(DataError, match="not a sweep's file"):
        list(sync([file]))
