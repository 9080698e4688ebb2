"""What hangs is found, written down and replaced; what hangs again and again is given up."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest
from command import cells, command, environment, rows_of, run_command, wait_for_rows

from skillarena.orchestration.driver_watch import watched
from skillarena.orchestration.signs_of_life import Signs, process_state, stacks

HANGS = "pick_clean_then_place_in_recep"


def hanging(name: str) -> tuple[str, ...]:
    return (f"backbone._target_=stalling.{name}", "selector=none", "run.retry_wait_s=0.1", "tracking.enabled=false")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def test_an_episode_is_quiet_since_its_last_turn() -> None:
    now = 100.0
    signs = Signs(clock=lambda: now)
    with signs.of("a") as beat:
        now = 103.0
        assert [(sign.turns, sign.quiet_s) for sign in signs.episodes()] == [(0, 3.0)]
        beat()
        now = 104.0
        assert [(sign.turns, sign.quiet_s) for sign in signs.episodes()] == [(1, 1.0)]
    assert signs.episodes() == ()


def test_an_episode_that_breaks_off_is_under_way_no_more() -> None:
    signs = Signs()
    with pytest.raises(ValueError, match="broken"), signs.of("a"):
        raise ValueError("broken")
    assert signs.episodes() == ()


def test_stacks_name_threads_and_functions() -> None:
    assert "thread MainThread:" in stacks(None)
    assert "test_stacks_name_threads_and_functions" in stacks(None)


def test_a_stopped_process_is_said_to_be_stopped_and_a_dead_one_unknown() -> None:
    process = subprocess.Popen(["sleep", "60"])
    try:
        process.send_signal(signal.SIGSTOP)
        deadline = time.monotonic() + 10
        while psutil.Process(process.pid).status() != psutil.STATUS_STOPPED and time.monotonic() < deadline:
            time.sleep(0.01)
        assert f"process {process.pid} is stopped" in process_state(process.pid)
    finally:
        process.kill()
        process.wait(10)
    assert "nothing is known" in process_state(process.pid)


def test_a_driver_that_stands_still_leaves_its_stacks_and_one_that_goes_on_nothing(tmp_path: Path) -> None:
    path = tmp_path / "stalls" / "driver.txt"
    with watched(path, 0.2) as beat:
        for _ in range(5):
            time.sleep(0.02)
            beat()
    assert not path.parent.exists()
    with watched(path, 0.2):
        time.sleep(0.5)
    assert "test_a_driver_that_stands_still" in path.read_text()


@pytest.mark.slow
def test_an_episode_that_hangs_is_tried_again_then_given_up_and_the_others_end(cache: Path, tmp_path: Path) -> None:
    done = run_command(
        "run",
        *hanging("HangingBackbone"),
        f"+backbone.hangs_in={HANGS}",
        "benchmark.limit=6",
        "run.stall_timeout_s=3",
        "run.max_attempts=2",
        cache=cache,
        cwd=tmp_path,
        PYTHONPATH=str(Path(__file__).parent),
    )
    (cell,) = cells(tmp_path / "outputs")
    rows = rows_of(cell)
    assert len(rows) == 6, done.stderr
    stuck = [row for row in rows if row.task_type == HANGS]
    assert stuck, {row.task_type for row in rows}
    for row in rows:
        assert (row.outcome == "infra_error") == (row.task_type == HANGS)
    assert all(row.attempts == 2 and "no turn for" in row.error for row in stuck)
    dumps = sorted((tmp_path / "outputs" / "stalls").iterdir())
    assert len(dumps) == 2 * len(stuck)
    for dump in dumps:
        text = dump.read_text()
        assert "stalling.py" in text
        assert any(f"episode {row.episode_id} (stuck)" in text for row in stuck)
        assert "2 turns, quiet for" in text
    assert str(dumps[-1]) in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_frozen_worker_is_replaced_and_nothing_is_lost(cache: Path, tmp_path: Path) -> None:
    arguments = ("selector=none", "benchmark.limit=6", "backbone.latency_s=0.2", "run.stall_timeout_s=12")
    process = subprocess.Popen(
        command("run", *arguments, "run.retry_wait_s=0.1", "tracking.enabled=false"),
        cwd=tmp_path,
        env=environment(cache),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    frozen = 0
    try:
        wait_for_rows(process, tmp_path)
        workers = [
            child
            for child in psutil.Process(process.pid).children(recursive=True)
            if "ray::RolloutWorker" in " ".join(child.cmdline())
        ]
        frozen = workers[0].pid
        os.kill(frozen, signal.SIGSTOP)
        _, err = process.communicate(timeout=200)
    finally:
        process.kill()
    assert process.returncode == 0, err
    assert "no sign of life for" in err
    (cell,) = cells(tmp_path / "outputs")
    assert len(rows_of(cell)) == len((cell / "episodes.jsonl").read_text().splitlines()) == 6
    assert any(row.attempts == 2 for row in rows_of(cell))
    dumps = [path.read_text() for path in (tmp_path / "outputs" / "stalls").iterdir()]
    assert sum(f"process {frozen} is stopped" in dump for dump in dumps) == 1
    assert not psutil.pid_exists(frozen)


@pytest.mark.slow
def test_a_cell_whose_episodes_are_all_lost_stops_early_with_one_message(cache: Path, tmp_path: Path) -> None:
    done = run_command(
        "run",
        *hanging("FailingBackbone"),
        "benchmark.limit=12",
        "run.max_attempts=1",
        "run.max_lost_in_a_row=3",
        "cluster.rollout_workers=1",
        cache=cache,
        cwd=tmp_path,
        PYTHONPATH=str(Path(__file__).parent),
    )
    assert done.returncode == 2, done.stderr
    assert "3 episodes in a row were given up; the last one: the line is dead" in done.stderr
    (cell,) = cells(tmp_path / "outputs")
    assert 3 <= len(rows_of(cell)) <= 5  # those under way may end
