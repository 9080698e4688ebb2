"""Selections kept beside the episodes they were played with (``run.keep_selections``)."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from command import cells, command, comparable, environment, rows_of, run_command
from row_factory import lost, make_row

from skillarena.envs.interface import Task
from skillarena.orchestration.ledger import Ledger, read_rows
from skillarena.orchestration.selection_store import selection_from_json
from skillarena.selectors.interface import SelectedSkill, Selection

TASKS = [Task("bench", "split", f"{n:064x}", f"task {n}", "kind", "goal") for n in range(3)]


def open_ledger(folder: Path) -> Ledger:
    return Ledger(folder, {"seed": 0}, {"cell": {"name": "c"}, "settings": {}}, TASKS)


def selection(number: int) -> Selection:
    skill = SelectedSkill(f"skill-{number}", "name", "", "text\n" * 100, 0.5, "It fits.")
    return Selection((skill,), details={"method": "m", "number": number})


def lines(folder: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in (folder / "selections.jsonl").read_bytes().splitlines()]


def kept(folder: Path) -> dict[str, Selection]:
    """Selections by episode, each read where the episode's row says it is."""
    found = {}
    with (folder / "selections.jsonl").open("rb") as file:
        for row in read_rows(folder).rows:
            if row.selection_offset >= 0:
                file.seek(row.selection_offset)
                line = orjson.loads(file.readline())
                assert (line["episode_id"], line["task_id"]) == (row.episode_id, row.task_id)
                found[row.episode_id] = selection_from_json(orjson.dumps(line["selection"]))
    return found


def test_a_selection_comes_back_as_it_was_played_with(tmp_path: Path) -> None:
    with open_ledger(tmp_path) as ledger:
        for n in range(3):
            ledger.append(make_row(n), {"n": n}, selection(n))
    assert kept(tmp_path) == {f"e{n}": selection(n) for n in range(3)}


def test_without_one_there_is_no_file_and_the_row_says_so(tmp_path: Path) -> None:
    with open_ledger(tmp_path) as ledger:
        assert ledger.append(make_row(0), {"n": 0}).selection_offset == -1
    assert not (tmp_path / "selections.jsonl").exists()


def test_rows_of_earlier_versions_count_as_having_none(tmp_path: Path) -> None:
    plain = asdict(make_row(0))
    del plain["selection_offset"]
    tmp_path.joinpath("episodes.jsonl").write_bytes(orjson.dumps(plain) + b"\n")
    (row,) = read_rows(tmp_path).rows
    assert row.selection_offset == -1


def test_keeping_can_be_switched_on_and_off_between_runs(tmp_path: Path) -> None:
    for n, keep in enumerate((False, True, False, True)):
        with open_ledger(tmp_path) as ledger:
            ledger.append(make_row(n), {"n": n}, selection(n) if keep else None)
    assert kept(tmp_path) == {"e1": selection(1), "e3": selection(3)}
    assert len(lines(tmp_path)) == 2


def test_an_episode_that_a_later_run_mends_has_the_selection_of_that_run(tmp_path: Path) -> None:
    with open_ledger(tmp_path) as ledger:
        ledger.append(lost(0))
        ledger.append(make_row(1), {"n": 1}, selection(1))
        ledger.append(make_row(0), {"n": 0}, selection(0))
    assert kept(tmp_path) == {"e0": selection(0), "e1": selection(1)}


@pytest.mark.parametrize("torn", [0, 1, 50])
def test_a_selection_whose_row_was_never_written_is_written_once_by_the_next_run(tmp_path: Path, torn: int) -> None:
    with open_ledger(tmp_path) as ledger:
        for n in range(2):
            ledger.append(make_row(n), {"n": n}, selection(n))
    rows = tmp_path / "episodes.jsonl"
    rows.write_bytes(rows.read_bytes().splitlines(keepends=True)[0])  # as if killed between the two files
    selections = tmp_path / "selections.jsonl"
    if torn:
        selections.write_bytes(selections.read_bytes()[:-torn])
    with open_ledger(tmp_path) as ledger:
        assert not ledger.finished("e1")
        ledger.append(make_row(1), {"n": "again"}, selection(1))
        ledger.append(make_row(2), {"n": 2}, selection(2))
    assert [line["episode_id"] for line in lines(tmp_path)] == ["e0", "e1", "e2"]
    assert kept(tmp_path) == {f"e{n}": selection(n) for n in range(3)}


def test_reading_rows_by_the_beginning_of_their_ids_reads_no_others(tmp_path: Path) -> None:
    with open_ledger(tmp_path) as ledger:
        for n in range(30):
            ledger.append(replace(make_row(n), episode_id=f"{n:02d}ab"))
    assert [row.episode_id for row in read_rows(tmp_path, "2").rows] == [f"2{n}ab" for n in range(10)]
    assert read_rows(tmp_path, "x").rows == ()


def write_until_killed(folder: Path) -> None:
    with open_ledger(folder) as ledger:
        for n in range(1_000_000):
            ledger.append(make_row(n), {"n": n}, selection(n))


def test_sigkill_while_writing_neither_loses_nor_doubles_a_selection(tmp_path: Path) -> None:
    process = multiprocessing.get_context("spawn").Process(target=write_until_killed, args=(tmp_path,))
    process.start()
    deadline = time.monotonic() + 60
    while len(read_rows(tmp_path).rows) < 20 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join(10)
    with open_ledger(tmp_path) as ledger:
        count = len(ledger.rows)
        assert count >= 20
        ledger.append(make_row(count), {"n": count}, selection(count))
    assert [line["episode_id"] for line in lines(tmp_path)] == [f"e{n}" for n in range(count + 1)]
    assert kept(tmp_path) == {f"e{n}": selection(n) for n in range(count + 1)}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_real_run_keeps_every_selection_through_a_kill_and_draws_them(tmp_path: Path) -> None:
    cache, whole, broken = tmp_path / "cache", tmp_path / "whole", tmp_path / "broken"
    for folder in (whole, broken):
        folder.mkdir()
    few = ("run", "benchmark.limit=6", "cluster.rollout_workers=2", "tracking.enabled=false")
    assert run_command(*few, cache=cache, cwd=whole).returncode == 0
    slow = (*few, "backbone.latency_s=0.15", "run.keep_selections=true")
    process = subprocess.Popen(
        command(*slow), cwd=broken, env=environment(cache), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    folder = broken / "outputs" / "cells"
    deadline = time.monotonic() + 200
    while not (folder.exists() and any(2 <= len(rows_of(cell)) <= 5 for cell in folder.iterdir())):
        assert process.poll() is None, "the run ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(10)
    done = run_command(*slow, cache=cache, cwd=broken)
    assert done.returncode == 0, done.stderr

    (cell,), (plain,) = cells(broken / "outputs"), cells(whole / "outputs")
    assert cell.name == plain.name, "keeping selections must not make another cell"
    assert not (plain / "selections.jsonl").exists()
    assert comparable(rows_of(cell)) == comparable(rows_of(plain))
    assert sorted(line["episode_id"] for line in lines(cell)) == sorted(row.episode_id for row in rows_of(cell))
    selections = kept(cell)
    for row in rows_of(cell):
        assert tuple(skill.id for skill in selections[row.episode_id].skills) == row.skills

    row = rows_of(cell)[0]
    drawn = run_command("show", row.episode_id[:8], "--figure", "case.svg", cache=cache, cwd=broken)
    assert drawn.returncode == 0, drawn.stderr
    assert row.task_name in drawn.stdout
    assert selections[row.episode_id].skills[0].reason[:40] in drawn.stdout
    assert (broken / "case.svg").read_text().startswith("<?xml")
    refused = run_command("show", row.episode_id[:8], "--figure", "case.svg", cache=cache, cwd=whole)
    assert refused.returncode == 2
    assert "run.keep_selections=true" in refused.stderr
    assert "Traceback" not in refused.stderr

    goal = ("select", "put a hot mug in cabinet", "--figure", "fresh.html", "--json")
    fresh = run_command(*goal, cache=cache, cwd=broken)
    assert fresh.returncode == 0, fresh.stderr
    chosen = orjson.loads(fresh.stdout)["skills"]
    assert all(skill["id"] in (broken / "fresh.html").read_text() for skill in chosen)
    nothing = run_command(
        "select", "put a hot mug in cabinet", "selector=none", "--figure", "n.png", cache=cache, cwd=broken
    )
    assert (nothing.returncode, nothing.stdout) == (2, "")
    assert "nothing to draw: it chooses no skill" in nothing.stderr
