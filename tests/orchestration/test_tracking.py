"""MLflow mirrors the ledger: nothing lost, nothing doubled, never in the way. Runs against a real SQLite store."""

from __future__ import annotations

import shutil
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from mlflow_store import Store
from report_cells import make_cell
from row_factory import lost, make_row

from skillarena.conf.errors import TrackingError
from skillarena.envs.interface import Task
from skillarena.orchestration.cell_run import CellRun
from skillarena.orchestration.ledger import EpisodeRow, Ledger, read_rows
from skillarena.orchestration.settings import TrackingSettings
from skillarena.orchestration.summary import summarise
from skillarena.orchestration.sweep_run import SweepRun
from skillarena.orchestration.tracking import Mirror
from skillarena.orchestration.tracking_store import connect, redacted

pytestmark = pytest.mark.slow

TASKS = [Task("bench", "split", f"t{n}", f"task {n}", "kind", "goal") for n in range(4)]
IDS = [task.id for task in TASKS]
SWEEP = "0123456789ab"


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("out")


@pytest.fixture
def store(output: Path, request: pytest.FixtureRequest) -> Store:
    return Store(output, request.node.name)


def cell(folder: Path, cell_id: str = "c" * 64) -> Ledger:
    about = {"cell": {"id": cell_id, "name": "bench/split vector", "axes": {"selector": "vector"}, "simulated": True}}
    about["settings"] = {}
    return Ledger(folder, {"selector": {"top_k": 1}, "seed": 0}, about, TASKS)


def test_a_mended_infra_error_is_logged_at_its_own_step(tmp_path: Path, store: Store) -> None:
    with cell(tmp_path) as ledger:
        run = CellRun(store.client, store.experiment_id, tmp_path)
        run.open()
        ledger.append(make_row(0))
        ledger.append(lost(1))
        run.log_rows(tuple(ledger.rows.values()))
        assert store.history(run.run_id, "episode/reward") == [(0, 100.0)]
        ledger.append(make_row(1, reward=40.0, finished_at=1_700_000_100.0))
        run.log_rows(tuple(ledger.rows.values()))
    assert store.history(run.run_id, "episode/reward") == [(0, 100.0), (1, 40.0)]
    assert store.history(run.run_id, "episode/infra_error")[-1] == (1, 0.0)
    assert store.history(run.run_id, "running/reward") == [(0, 100.0), (1, 70.0)]


def test_more_episodes_than_one_batch_holds_are_all_logged(tmp_path: Path, store: Store) -> None:
    with cell(tmp_path):
        run = CellRun(store.client, store.experiment_id, tmp_path)
        run.open()
        run.log_rows([make_row(n, finished_at=1_700_000_000.0 + n) for n in range(90)])
    assert len(store.history(run.run_id, "episode/reward")) == 90
    assert len(store.history(run.run_id, "running/reward")) == 90


def test_tags_of_a_run_that_is_there_follow_while_its_parameters_stay(tmp_path: Path, store: Store) -> None:
    with cell(tmp_path):
        run_id = store.client.create_run(store.experiment_id, tags={"skillarena.cell_id": "c" * 64}).info.run_id
        store.client.log_param(run_id, "seed", "as it was")
        run = CellRun(store.client, store.experiment_id, tmp_path)
        run.open()
    assert run.run_id == run_id
    found = store.client.get_run(run_id).data
    assert found.params == {"seed": "as it was", "selector.top_k": "1"}
    assert found.tags["selector"] == "vector"


def test_the_mirror_follows_a_running_cell_and_nests_it_under_its_sweep(tmp_path: Path, store: Store) -> None:
    mirror = Mirror(store.settings, store.output, SWEEP)
    with cell(tmp_path) as ledger:
        mirror.start({tmp_path: ledger.rows})
        for n in range(4):
            ledger.append(make_row(n))
            time.sleep(0.3)
        mirror.end_cell(tmp_path, summarise(list(ledger.rows.values()), IDS, 200), "FINISHED")
        assert mirror.stop(report=False), mirror.problem
    child, parent = store.run("cell"), store.run("sweep")
    assert child.data.tags["mlflow.parentRunId"] == parent.info.run_id
    assert child.data.tags["sweep"] == parent.data.tags["sweep"] == SWEEP
    assert len(store.history(child.info.run_id, "episode/env_steps")) == 4
    assert (child.info.status, parent.info.status) == ("FINISHED", "FINISHED")
    assert parent.data.metrics["sweep/episodes"] == 4
    assert parent.info.run_name == "sweep 012345 vector [simulated]"


def test_a_sweep_that_ends_keeps_its_report_with_its_run(tmp_path: Path, store: Store) -> None:
    cells = [make_cell(tmp_path, selector=selector, rewards=(100.0, 0.0)) for selector in ("vector", "none")]
    parent = _mirror(store, cells, report=True)
    assert {"report/index.html", "report/report.md", "report/report.json"} <= store.artifacts(parent, "report")
    assert "report/figures" in store.artifacts(parent, "report")
    assert any(path.endswith("table1.csv") for path in store.artifacts(parent, "report/tables"))


def test_a_report_that_fails_is_shown_and_harms_nothing(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: SweepRun) -> None:
        raise RuntimeError("no page today")

    monkeypatch.setattr(SweepRun, "log_report", fail)
    mirror = _started(store, [make_cell(tmp_path)])
    assert not mirror.stop()
    assert mirror.problem == "report: no page today"
    assert (store.run("cell").info.status, store.run("sweep").info.status) == ("FINISHED", "FINISHED")


def test_a_report_that_takes_too_long_is_left_and_named(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SweepRun, "log_report", lambda _: time.sleep(30))
    mirror = _started(store, [make_cell(tmp_path)], timeout_s=4.0)
    start = time.monotonic()
    assert not mirror.stop()
    assert time.monotonic() - start < 10
    assert mirror.problem == "report: not finished after 4 s"
    assert store.run("sweep").info.status == "FINISHED"


def test_the_mirror_logs_one_trace_for_each_episode_on_request(tmp_path: Path, store: Store) -> None:
    folder = make_cell(tmp_path, rewards=(100.0, "lost", 0.0))
    for _ in range(2):  # the second run finds everything there
        mirror = _started(store, [folder], traces=True)
        assert mirror.stop(report=False), mirror.problem
    traces = store.traces(store.run("cell").info.run_id)
    assert len(traces) == 2
    assert {trace.info.tags["outcome"] for trace in traces} == {"solved", "step_limit"}


def test_a_store_that_takes_no_traces_still_gets_every_record(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: CellRun) -> None:
        raise NotImplementedError("spans are not supported")

    monkeypatch.setattr(CellRun, "log_traces", refuse)
    mirror = _started(store, [make_cell(tmp_path)], traces=True)
    assert not mirror.stop(report=False)
    assert mirror.problem == "traces: spans are not supported"
    assert store.run("cell").info.status == "FINISHED"


def test_a_store_that_is_away_delays_nothing(tmp_path: Path, store: Store) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        dead = f"http://127.0.0.1:{probe.getsockname()[1]}"
    mirror = Mirror(store.settings.model_copy(update={"uri": dead, "timeout_s": 1.0}), store.output, None)
    with cell(tmp_path) as ledger:
        mirror.start({tmp_path: ledger.rows})
        start = time.monotonic()
        rows: list[EpisodeRow] = [ledger.append(make_row(n)) for n in range(4)]
        assert time.monotonic() - start < 5
        mirror.end_cell(tmp_path, summarise(rows, IDS, 200), "FINISHED")
        assert not mirror.stop()
    assert mirror.problem


def test_a_failed_cell_shows_at_its_sweep(tmp_path: Path, store: Store) -> None:
    mirror = _started(store, [make_cell(tmp_path)], status="FAILED")
    assert mirror.stop(report=False), mirror.problem
    assert (store.run("cell").info.status, store.run("sweep").info.status) == ("FAILED", "FAILED")


def test_an_unreachable_store_is_a_tracking_error_without_credentials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://someone:secret-word@127.0.0.1:9")
    with pytest.raises(TrackingError) as caught:
        connect(TrackingSettings(), str(tmp_path))
    assert "secret-word" not in str(caught.value)


def test_a_process_that_dies_while_it_makes_a_store_leaves_none_that_is_half_made(tmp_path: Path) -> None:
    code = f"""
from skillarena.orchestration.settings import TrackingSettings
from skillarena.orchestration.tracking_store import connect
connect(TrackingSettings(), {str(tmp_path)!r})
"""
    process = subprocess.Popen([sys.executable, "-c", code])
    deadline = time.monotonic() + 120
    while not any(path.stat().st_size for path in tmp_path.rglob("*.db")):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.wait()
    assert not (tmp_path / "mlflow.db").exists()
    client, experiment_id = connect(TrackingSettings(), str(tmp_path))
    assert client.get_experiment(experiment_id).name == TrackingSettings().experiment
    assert (tmp_path / "mlflow.db").exists()


def test_a_store_of_an_older_version_says_how_to_bring_it_up_to_date(tmp_path: Path, store: Store) -> None:
    shutil.copy(Path(store.output) / "mlflow.db", tmp_path)
    with closing(sqlite3.connect(tmp_path / "mlflow.db")) as database:
        database.execute("UPDATE alembic_version SET version_num = '451aebb31d03'")
        database.commit()
    with pytest.raises(TrackingError) as caught:
        connect(TrackingSettings(), str(tmp_path))
    assert "mlflow db upgrade" in caught.value.fix


def test_redaction_keeps_everything_but_the_credentials() -> None:
    assert redacted("https://user:pw@host:1/path") == "https://host:1/path"
    assert redacted("https://host/a@b") == "https://host/a@b"
    assert redacted("sqlite:////tmp/x.db") == "sqlite:////tmp/x.db"


def _started(store: Store, cells: list[Path], status: str = "FINISHED", **settings: Any) -> Mirror:
    """A mirror of finished cells that is told of their ends."""
    mirror = Mirror(store.settings.model_copy(update=settings), store.output, SWEEP)
    ledgers = {folder: {row.episode_id: row for row in read_rows(folder).rows} for folder in cells}
    mirror.start(ledgers)
    for folder, rows in ledgers.items():
        ids = [row.task_id for row in rows.values()]
        mirror.end_cell(folder, summarise(list(rows.values()), ids, 200), status)
    return mirror


def _mirror(store: Store, cells: list[Path], report: bool) -> str:
    mirror = _started(store, cells)
    assert mirror.stop(report=report), mirror.problem
    return str(store.run("sweep").info.run_id)
