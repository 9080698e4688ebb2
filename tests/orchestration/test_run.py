"""`skillarena run` from the shell: real environments, real Ray, real MLflow."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest
from command import cells, command, comparable, environment, rows_of, run_command, wait_for_rows

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

FEW = ("benchmark=alfworld", "benchmark.limit=6", "cluster.rollout_workers=2")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def finished(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """An undisturbed run of one cell."""
    folder = tmp_path_factory.mktemp("finished")
    return folder, run_command("run", *FEW, cache=cache, cwd=folder)


def test_one_command_on_a_fresh_machine_plays_every_task_once(
    finished: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    folder, done = finished
    assert done.returncode == 0, done.stderr
    (cell,) = cells(folder / "outputs")
    rows = rows_of(cell)
    tasks = json.loads((cell / "config.json").read_text())["tasks"]
    assert len(rows) == 6
    assert {row.task_id for row in rows} == {task["id"] for task in tasks}
    assert len({row.task_type for row in rows}) == 6
    assert all(row.outcome in ("solved", "step_limit") and row.prompt_tokens > 0 for row in rows)
    assert any(row.skills for row in rows)


def test_the_result_is_a_table_marked_as_simulated(
    finished: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    _, done = finished
    assert "SIMULATED" in done.stdout
    assert "6/6" in done.stdout
    assert "skillreranker" in done.stdout
    assert "mlflow ui --backend-store-uri sqlite:///" in done.stdout
    assert "6/6 episodes" in done.stderr


def test_mlflow_holds_one_finished_run_with_every_episode(
    finished: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    from mlflow import MlflowClient

    folder, _ = finished
    client = MlflowClient(f"sqlite:///{folder / 'outputs' / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("skillarena")
    assert experiment is not None
    (run,) = client.search_runs([experiment.experiment_id])
    assert run.info.status == "FINISHED"
    assert run.data.tags["simulated"] == "true"
    for measure in ("reward", "env_steps", "total_tokens", "cached_tokens", "selection_seconds", "wall_seconds"):
        history = client.get_metric_history(run.info.run_id, f"episode/{measure}")
        assert [point.step for point in history] == list(range(6)), measure
    assert run.data.metrics["summary/reward_ci95_low"] <= run.data.metrics["summary/reward"]


def test_the_same_command_again_plays_nothing_and_prints_the_same_table(
    finished: tuple[Path, subprocess.CompletedProcess[str]], cache: Path
) -> None:
    folder, first = finished
    before = (cells(folder / "outputs")[0] / "episodes.jsonl").read_bytes()
    start = time.monotonic()
    again = run_command("run", *FEW, cache=cache, cwd=folder)
    assert again.returncode == 0
    assert "6 finished earlier" in again.stderr
    assert again.stdout == first.stdout
    assert (cells(folder / "outputs")[0] / "episodes.jsonl").read_bytes() == before
    assert time.monotonic() - start < 60


def test_a_driver_killed_halfway_loses_and_doubles_nothing(
    finished: tuple[Path, subprocess.CompletedProcess[str]], cache: Path, tmp_path: Path
) -> None:
    slow = (*FEW, "backbone.latency_s=0.15")
    process = subprocess.Popen(
        command("run", *slow),
        cwd=tmp_path,
        env=environment(cache),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    ledger = tmp_path / "outputs" / "cells"
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline:
        if ledger.exists() and any(2 <= len(rows_of(cell)) <= 5 for cell in ledger.iterdir()):
            break
        assert process.poll() is None, "the run ended before it could be killed"
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(10)
    (cell,) = cells(tmp_path / "outputs")
    before = rows_of(cell)
    assert 2 <= len(before) <= 5
    done = run_command("run", *slow, cache=cache, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"{len(before)} finished earlier" in done.stderr
    lines = (cell / "episodes.jsonl").read_text().splitlines()
    assert len(lines) == 6
    assert rows_of(cell)[: len(before)] == before
    undisturbed = rows_of(cells(finished[0] / "outputs")[0])
    assert comparable(rows_of(cell)) == comparable(undisturbed)
    estimates = [
        json.loads((c / "summary.json").read_text())["estimates"] for c in (cell, cells(finished[0] / "outputs")[0])
    ]
    for measure in ("reward", "success", "env_steps", "total_tokens", "cached_tokens", "skills_selected"):
        assert estimates[0][measure] == estimates[1][measure]


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_sigterm_stop_cleanly_and_say_how_to_go_on(
    cache: Path, tmp_path: Path, stop: signal.Signals
) -> None:
    process = subprocess.Popen(
        command("run", *FEW, "backbone.latency_s=0.3"),
        cwd=tmp_path,
        env=environment(cache),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for_rows(process, tmp_path)
    process.send_signal(stop)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert "same command continues" in err
    assert "Traceback" not in err
    assert "!" in out


def test_a_sweep_plays_all_cells_in_one_go_and_nests_them_in_mlflow(cache: Path, tmp_path: Path) -> None:
    done = run_command(
        "run",
        "-m",
        "benchmark.limit=2",
        "selector=none,vector,without_parsing",
        "seed=0,1",
        "run.bootstrap_resamples=200",
        cache=cache,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "6 cells, 12 episodes" in done.stderr
    assert len(cells(tmp_path / "outputs")) == 6
    assert done.stderr.count("Traceback") == 0
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{tmp_path / 'outputs' / 'mlflow.db'}")
    runs = client.search_runs(["1"])
    parents = [run for run in runs if "skillarena.sweep" in run.data.tags]
    assert len(parents) == 1
    assert sum(run.data.tags.get("mlflow.parentRunId") == parents[0].info.run_id for run in runs) == 6
    reused = [row.selection_reused for cell in cells(tmp_path / "outputs") for row in rows_of(cell)]
    assert sum(not flag for flag in reused) == 6  # three selectors, two tasks; the second seed reuses them
    assert not (tmp_path / "multirun.yaml").exists()


def test_select_explains_parse_edges_flow_stages_and_choice(cache: Path, tmp_path: Path) -> None:
    done = run_command("select", "put a hot mug in coffeemachine", "selector.k=8", cache=cache, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for word in ("Parse", "S0", "Candidates (8)", "cosine", "rho", "In", "Out", "Cross", "Stage", "phi", "Chosen"):
        assert word in done.stdout, word
    as_json = run_command(
        "select", "--json", "put a hot mug in coffeemachine", "selector.k=8", cache=cache, cwd=tmp_path
    )
    plain = json.loads(as_json.stdout)
    assert 1 <= len(plain["skills"]) <= len(plain["details"]["stages"])


def test_a_killed_rollout_worker_is_replaced_and_its_episodes_are_played_again(
    finished: tuple[Path, subprocess.CompletedProcess[str]], cache: Path, tmp_path: Path
) -> None:
    process = subprocess.Popen(
        command("run", *FEW, "backbone.latency_s=0.15", "run.retry_wait_s=0.1"),
        cwd=tmp_path,
        env=environment(cache),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for_rows(process, tmp_path)
    workers = [
        child
        for child in psutil.Process(process.pid).children(recursive=True)
        if "ray::RolloutWorker" in " ".join(child.cmdline())
    ]
    assert workers
    workers[0].kill()
    _, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    assert "a new one takes its place" in err
    (cell,) = cells(tmp_path / "outputs")
    (undisturbed,) = cells(finished[0] / "outputs")
    assert len((cell / "episodes.jsonl").read_text().splitlines()) == 6
    assert comparable(rows_of(cell)) == comparable(rows_of(undisturbed))
    assert any(row.attempts > 1 for row in rows_of(cell))
