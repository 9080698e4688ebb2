"""MLflow mirrors the ledger: nothing lost, nothing doubled, never in the way. Runs against a real SQLite store."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from typing import Any

import pytest
from row_factory import lost, make_row

from skillarena.conf.errors import TrackingError
from skillarena.envs.interface import Task
from skillarena.orchestration.ledger import EpisodeRow, Ledger
from skillarena.orchestration.settings import TrackingSettings
from skillarena.orchestration.summary import summarise
from skillarena.orchestration.tracking import CellRun, Mirror, connect, redacted, sync, tracking_uri

pytestmark = pytest.mark.slow

TASKS = [Task("bench", "split", f"t{n}", f"task {n}", "kind", "goal") for n in range(4)]
IDS = [task.id for task in TASKS]


class Store:
    """An experiment of its own in the module's SQLite store."""

    def __init__(self, output: Path, experiment: str) -> None:
        self.output = str(output)
        self.settings = TrackingSettings(flush_every_s=0.2, timeout_s=60, experiment=experiment)
        self.client, self.experiment_id = connect(self.settings, self.output)

    def runs(self) -> list[Any]:
        return list(self.client.search_runs([self.experiment_id]))

    def history(self, run_id: str, key: str) -> list[tuple[int, float]]:
        return [(point.step, point.value) for point in self.client.get_metric_history(run_id, key)]


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


def test_sync_logs_every_episode_once_however_often_it_is_repeated(tmp_path: Path, store: Store) -> None:
    with cell(tmp_path) as ledger:
        rows = [ledger.append(make_row(n, reward=float(n)), {"n": n}) for n in range(3)]
    summary = summarise(rows, IDS, 200)
    first = sync(tmp_path, store.settings, store.output, summary)
    assert sync(tmp_path, store.settings, store.output, summary) == first
    assert store.history(first, "episode/reward") == [(0, 0.0), (1, 1.0), (2, 2.0)]
    (run,) = store.runs()
    assert run.data.metrics["summary/reward"] == 1.0
    assert run.data.metrics["summary/coverage"] == 0.75
    assert run.data.params == {"selector.top_k": "1", "seed": "0"}
    assert run.data.tags["selector"] == "vector"
    assert run.data.tags["simulated"] == "true"
    assert "[simulated]" in run.data.tags["mlflow.runName"]
    assert run.info.status == "KILLED"
    artifacts = {item.path for item in store.client.list_artifacts(first)}
    assert {"config.json", "episodes.json", "episodes.jsonl", "trajectories.jsonl"} <= artifacts


def test_the_episode_table_loads_as_mlflow_table(tmp_path: Path, store: Store) -> None:
    import mlflow

    with cell(tmp_path) as ledger:
        rows = [ledger.append(make_row(n)) for n in range(4)]
    run_id = sync(tmp_path, store.settings, store.output, summarise(rows, IDS, 200))
    mlflow.set_tracking_uri(tracking_uri(store.settings, store.output))  # load_table searches the global store
    table = store.client.load_table(store.experiment_id, "episodes.json", run_ids=[run_id])
    assert list(table["task_id"]) == IDS
    assert list(table["skills"]) == ["a, b"] * 4


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


def test_the_mirror_follows_a_running_cell_and_nests_it_under_its_sweep(tmp_path: Path, store: Store) -> None:
    mirror = Mirror(store.settings, store.output, "sweep1")
    with cell(tmp_path) as ledger:
        mirror.start({tmp_path: ledger.rows})
        for n in range(4):
            ledger.append(make_row(n))
            time.sleep(0.3)
        mirror.end_cell(tmp_path, summarise(list(ledger.rows.values()), IDS, 200), "FINISHED")
        assert mirror.stop(), mirror.problem
    child, parent = sorted(store.runs(), key=lambda run: "skillarena.sweep" in run.data.tags)
    assert child.data.tags["mlflow.parentRunId"] == parent.info.run_id
    assert len(store.history(child.info.run_id, "episode/env_steps")) == 4
    assert (child.info.status, parent.info.status) == ("FINISHED", "FINISHED")


def test_a_store_that_is_away_delays_nothing_and_sync_catches_up(tmp_path: Path, store: Store) -> None:
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
    run_id = sync(tmp_path, store.settings, store.output, summarise(rows, IDS, 200))
    assert len(store.history(run_id, "episode/reward")) == 4


def test_an_unreachable_store_is_a_tracking_error_without_credentials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://someone:secret-word@127.0.0.1:9")
    with pytest.raises(TrackingError) as caught:
        connect(TrackingSettings(), str(tmp_path))
    assert "secret-word" not in str(caught.value)


def test_redaction_keeps_everything_but_the_credentials() -> None:
    assert redacted("https://user:pw@host:1/path") == "https://host:1/path"
    assert redacted("https://host/a@b") == "https://host/a@b"
    assert redacted("sqlite:////tmp/x.db") == "sqlite:////tmp/x.db"
