"""Traces in a real SQLite store: whole, in order, and there once."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlflow_store import Store
from report_cells import make_cell

from skillarena.conf.errors import DataError
from skillarena.orchestration.cell_run import CellRun
from skillarena.orchestration.ledger import read_rows, read_trajectories
from skillarena.orchestration.trace_log import TraceLog

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("out")


@pytest.fixture
def store(output: Path, request: pytest.FixtureRequest) -> Store:
    return Store(output, request.node.name)


def _log(store: Store, cell: Path) -> TraceLog:
    run = CellRun(store.client, store.experiment_id, cell)
    run.open()
    return TraceLog(store.client, store.experiment_id, run.run_id, cell)


def test_a_trace_says_what_the_ledger_says(tmp_path: Path, store: Store) -> None:
    cell = make_cell(tmp_path, rewards=(100.0,), steps=3, tokens=999)
    (row,) = read_rows(cell).rows
    log = _log(store, cell)
    log.log([row])
    (trace,) = store.traces(log.run_id)
    assert trace.info.token_usage["total_tokens"] == row.total_tokens == 999
    assert trace.info.request_preview == "do task 0"
    assert trace.info.response_preview == "solved, reward 100, 3 steps"
    assert trace.info.tags.items() >= {"outcome": "solved", "simulated": "true"}.items()
    assert row.episode_id.startswith(trace.info.client_request_id)
    assert trace.info.execution_duration == pytest.approx(1000 * (row.wall_seconds + row.selection_seconds), abs=1)


def test_spans_keep_their_order_their_times_and_their_texts(tmp_path: Path, store: Store) -> None:
    cell = make_cell(tmp_path, rewards=(100.0,), steps=2)
    log = _log(store, cell)
    log.log(read_rows(cell).rows)
    (trace,) = store.traces(log.run_id)
    whole, *parts = sorted(trace.data.spans, key=lambda span: (span.start_time_ns, span.parent_id is not None))
    assert whole.parent_id is None
    assert {part.parent_id for part in parts} == {whole.span_id}
    names = ["selection", "reset", "model 1", "environment 1", "model 2", "environment 2"]
    assert [part.name for part in parts] == names
    (trajectory,) = read_trajectories(cell)
    assert parts[3].outputs == trajectory["turns"][0]["observation"]
    assert parts[2].end_time_ns - parts[2].start_time_ns == int(trajectory["turns"][0]["llm_seconds"] * 1e9)
    assert parts[2].span_type == "CHAT_MODEL"


def test_traces_are_written_once_in_however_many_parts(tmp_path: Path, store: Store) -> None:
    cell = make_cell(tmp_path, rewards=(100.0,) * 60, steps=10)
    rows = read_rows(cell).rows
    log = _log(store, cell)
    log.log(rows[:20])
    log.log(rows)
    _log(store, cell).log(rows)
    assert len(store.client.search_traces(locations=[store.experiment_id], max_results=500)) == 60


def test_a_trace_that_broke_off_is_made_whole(tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    from mlflow.tracing.client import TracingClient

    cell = make_cell(tmp_path, rewards=(100.0,))
    rows = read_rows(cell).rows
    with monkeypatch.context() as patch:
        patch.setattr(TracingClient, "start_trace", lambda *_: (_ for _ in ()).throw(OSError("gone")))
        with pytest.raises(OSError, match="gone"):
            _log(store, cell).log(rows)
    log = _log(store, cell)
    assert store.traces(log.run_id) == []
    log.log(rows)
    assert len(store.traces(log.run_id)) == 1
    assert len(store.client.search_traces(locations=[store.experiment_id])) == 1


def test_a_damaged_trajectory_is_named(tmp_path: Path, store: Store) -> None:
    cell = make_cell(tmp_path, rewards=(100.0,))
    (cell / "trajectories.jsonl").write_text("nothing\n")
    with pytest.raises(DataError, match=r"trajectories\.jsonl"):
        _log(store, cell).log(read_rows(cell).rows)
