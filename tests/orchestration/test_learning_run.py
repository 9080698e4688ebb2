"""Selectors that take part in episodes and learn from them, through the real command."""

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

from skillarena.orchestration.ledger import read_trajectories

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

HERE = {"PYTHONPATH": str(Path(__file__).parent)}
DIARY = (
    "~selector",
    "+selector._target_=diary.Diary",
    "+selector.name=diary",
    "benchmark=alfworld",
    "benchmark.limit=5",
    "benchmark.max_steps=12",
    "tracking.enabled=false",
    "run.retry_wait_s=0",
)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def finished(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cell of an undisturbed run with two workers."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "taught").mkdir()
    done = run_command(
        "run",
        *DIARY,
        "cluster.rollout_workers=2",
        cache=cache,
        cwd=folder,
        DIARY_TAUGHT=str(folder / "taught"),
        **HERE,
    )
    assert done.returncode == 0, done.stderr
    (cell,) = cells(folder / "outputs")
    return cell


def tasks_of(cell: Path) -> list[dict[str, str]]:
    tasks: list[dict[str, str]] = json.loads((cell / "config.json").read_text())["tasks"]
    return tasks


def test_episodes_of_a_batch_start_from_the_memory_of_the_batches_before(finished: Path) -> None:
    known = {lesson["task_id"]: lesson["content"]["known"] for lesson in lessons_of(finished)}
    assert [known[task["id"]] for task in tasks_of(finished)] == [0, 0, 2, 2, 4]
    skills = {row.task_id: row.skills for row in rows_of(finished)}
    by_batch = [skills[task["id"]] for task in tasks_of(finished)]
    assert by_batch[0] == by_batch[1] != by_batch[2] == by_batch[3] != by_batch[4]
    memories = {row.task_id: row.memory for row in rows_of(finished)}
    assert [len({memories[task["id"]] for task in tasks_of(finished)[at : at + 2]}) for at in (0, 2, 4)] == [1, 1, 1]
    assert [memories[tasks_of(finished)[at]["id"]][:4] for at in (0, 2, 4)] == ["", "0001", "0002"]
    assert {name for name in memories.values() if name} < {path.name for path in (finished / "memory").iterdir()}


def test_the_last_memory_holds_all_lessons_in_task_order(finished: Path) -> None:
    final = json.loads(memory_of(finished))
    assert [entry["task"] for entry in final] == [task["name"] for task in tasks_of(finished)]
    assert sorted(path.name[:5] for path in (finished / "memory").iterdir()) == ["0001-", "0002-", "0003-"]
    assert len(list((finished.parents[2] / "taught").iterdir())) == 3


def test_tools_are_called_and_counted_apart_from_steps_and_turns(finished: Path) -> None:
    for row, played in zip(rows_of(finished), read_trajectories(finished), strict=True):
        called = [turn["tool"].split()[0] for turn in played["turns"] if turn["tool"]]
        assert called[:2] == ["search", "show"]
        assert called[2:] == ["write"]  # in the review after the end
        assert row.skill_lookups == 3
        assert row.env_steps == sum(turn["action"] is not None for turn in played["turns"]) <= 12
        assert row.skills_added >= 0
        assert row.lookup_seconds > 0
        assert sum(bool(turn["advice"]) for turn in played["turns"]) <= 1
    assert any(turn["advice"] for played in read_trajectories(finished) for turn in played["turns"])
    assert all(lesson["content"]["notes"] == ["what you learned"] for lesson in lessons_of(finished))


def test_another_number_of_workers_gives_the_same_rows_and_memory(finished: Path, cache: Path, tmp_path: Path) -> None:
    done = run_command(
        "run",
        *DIARY,
        "cluster.rollout_workers=1",
        "cluster.episodes_per_worker=1",
        "output_dir=other",
        cache=cache,
        cwd=tmp_path,
        **HERE,
    )
    assert done.returncode == 0, done.stderr
    (cell,) = cells(tmp_path / "other")
    assert memory_of(cell) == memory_of(finished)
    assert comparable(rows_of(cell)) == comparable(rows_of(finished))


def test_a_run_killed_in_the_middle_goes_on_where_it_was(finished: Path, cache: Path, tmp_path: Path) -> None:
    slow = (*DIARY, "backbone.latency_s=0.1", "cluster.rollout_workers=2")
    process = subprocess.Popen(
        command("run", *slow),
        cwd=tmp_path,
        env=environment(cache, **HERE),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    outputs = tmp_path / "outputs" / "cells"
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline and not (outputs.exists() and any(outputs.glob("*/memory/0001-*"))):
        assert process.poll() is None, "the run ended before it could be killed"
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(10)
    (cell,) = cells(tmp_path / "outputs")
    before = rows_of(cell)
    assert 2 <= len(before) < 5
    (cell / "lessons.jsonl").open("a").write('{"torn')
    done = run_command("run", *slow, cache=cache, cwd=tmp_path, **HERE)
    assert done.returncode == 0, done.stderr
    assert rows_of(cell)[: len(before)] == before
    assert len((cell / "episodes.jsonl").read_text().splitlines()) == 5
    assert notes_of(memory_of(cell)) == notes_of(memory_of(finished))
    again = run_command("run", *slow, cache=cache, cwd=tmp_path, **HERE)
    assert "5 finished earlier" in again.stderr


def test_a_damaged_memory_is_made_again_and_a_lost_lesson_is_an_error(
    finished: Path, cache: Path, tmp_path: Path
) -> None:
    done = run_command("run", *DIARY, cache=cache, cwd=tmp_path, **HERE)
    assert done.returncode == 0, done.stderr
    (cell,) = cells(tmp_path / "outputs")
    before = memory_of(cell)
    (last,) = (cell / "memory").glob("0003-*")
    last.write_bytes(before[:-1])
    again = run_command("run", *DIARY, cache=cache, cwd=tmp_path, **HERE)
    assert again.returncode == 0, again.stderr
    assert "is damaged" in again.stderr
    assert memory_of(cell) == before
    lessons = (cell / "lessons.jsonl").read_bytes().splitlines(keepends=True)
    (cell / "lessons.jsonl").write_bytes(b"".join(lessons[:-1]) + b'{"task_id": [1]}\n')
    last.unlink()
    lost = run_command("run", *DIARY, cache=cache, cwd=tmp_path, **HERE)
    assert lost.returncode == 2
    assert "lacks what 1 finished episodes taught" in lost.stderr
    assert "Traceback" not in lost.stderr


def test_a_merge_that_hangs_fails_its_cell_only(cache: Path, tmp_path: Path) -> None:
    done = run_command(
        "run", *DIARY, "+selector.fault=hang", "run.selection_timeout_s=6", cache=cache, cwd=tmp_path, **HERE
    )
    assert done.returncode == 2
    assert "learning from a batch of episodes failed: no selection after 6 s" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_lost_process_with_sessions_costs_attempts_and_nothing_else(
    finished: Path, cache: Path, tmp_path: Path
) -> None:
    slow = (*DIARY, "backbone.latency_s=0.1", "cluster.rollout_workers=2")
    process = subprocess.Popen(
        command("run", *slow),
        cwd=tmp_path,
        env=environment(cache, **HERE),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for_rows(process, tmp_path)
    family = psutil.Process(process.pid).children(recursive=True)
    (desk,) = [child for child in family if "SessionDesk" in " ".join(child.cmdline())]
    desk.kill()
    _, err = process.communicate(timeout=250)
    assert process.returncode == 0, err
    assert "attempt lost" in err
    (cell,) = cells(tmp_path / "outputs")
    assert len((cell / "episodes.jsonl").read_text().splitlines()) == 5
    assert any(row.attempts > 1 for row in rows_of(cell))
    assert notes_of(memory_of(cell)) == notes_of(memory_of(finished))


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("learn", "too hard"),
        ("open", "no session today"),
        ("memory", "the diary is damaged"),
        ("call", "index is gone"),
    ],
)
def test_a_selector_that_fails_stops_its_cell_with_the_reason(
    cache: Path, tmp_path: Path, fault: str, message: str
) -> None:
    done = run_command("run", *DIARY, f"+selector.fault={fault}", cache=cache, cwd=tmp_path, **HERE)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_tasks_that_must_not_be_learned_from_are_refused_before_anything_starts(cache: Path, tmp_path: Path) -> None:
    done = run_command("run", *DIARY, "benchmark.split=generated_unseen", cache=cache, cwd=tmp_path, **HERE)
    assert done.returncode == 2
    assert "must not see these tasks" in done.stderr
    assert not (tmp_path / "outputs" / "cells").exists()


def lessons_of(cell: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (cell / "lessons.jsonl").read_text().splitlines()]


def memory_of(cell: Path) -> bytes:
    (path,) = (cell / "memory").glob("0003-*")
    return path.read_bytes()


def notes_of(memory: bytes) -> list[tuple[str, list[str]]]:
    return [(entry["task"], entry["notes"]) for entry in json.loads(memory)]
