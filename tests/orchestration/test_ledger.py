"""The ledger loses nothing, doubles nothing and refuses what does not belong to it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from dataclasses import asdict
from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from row_factory import lost, make_row

from skillarena.conf.errors import ConfigError, DataError
from skillarena.envs.interface import Task
from skillarena.orchestration.ledger import Ledger, changed_keys, read_config, read_rows, read_trajectories

TASKS = [Task("bench", "split", f"{n:064x}", f"task {n}", "kind", "goal") for n in range(3)]


def open_ledger(folder: Path, **identity: object) -> Ledger:
    return Ledger(folder, {"seed": 0, **identity}, {"cell": {"name": "c"}, "settings": {}}, TASKS)


def test_rows_and_trajectories_come_back_as_written(tmp_path: Path) -> None:
    with open_ledger(tmp_path) as ledger:
        written = [ledger.append(make_row(n), {"turns": [n]}) for n in range(3)]
    assert list(read_rows(tmp_path).rows) == written
    assert list(read_trajectories(tmp_path)) == [{"turns": [0]}, {"turns": [1]}, {"turns": [2]}]
    assert [task["id"] for task in read_config(tmp_path)["tasks"]] == [task.id for task in TASKS]


def test_reopening_knows_what_is_finished_and_an_infra_error_is_not(tmp_path: Path) -> None:
    with open_ledger(tmp_path) as ledger:
        ledger.append(make_row(0))
        ledger.append(lost(1))
    with open_ledger(tmp_path) as ledger:
        assert ledger.finished("e0")
        assert not ledger.finished("e1")
        assert not ledger.finished("e2")


def test_a_later_row_replaces_an_infra_error_in_its_place(tmp_path: Path) -> None:
    with open_ledger(tmp_path) as ledger:
        ledger.append(lost(0))
        ledger.append(make_row(1))
        ledger.append(make_row(0))
    assert [(row.episode_id, row.outcome) for row in read_rows(tmp_path).rows] == [("e0", "solved"), ("e1", "solved")]


@given(cut=st.integers(min_value=1, max_value=400))
@settings(max_examples=30, deadline=None)
def test_a_torn_last_line_costs_only_its_own_episode(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    folder = tmp_path_factory.mktemp("cell")
    with open_ledger(folder) as ledger:
        for n in range(3):
            ledger.append(make_row(n), {"n": n})
    path = folder / "episodes.jsonl"
    path.write_bytes(path.read_bytes()[:-cut])
    with open_ledger(folder) as ledger:
        assert [row.episode_id for row in ledger.rows.values()] == ["e0", "e1"]
        ledger.append(make_row(2), {"n": "again"})
    assert [row.episode_id for row in read_rows(folder).rows] == ["e0", "e1", "e2"]
    assert read_rows(folder).damaged_lines == 0
    assert list(read_trajectories(folder)) == [{"n": 0}, {"n": 1}, {"n": "again"}]


def test_a_damaged_line_in_the_middle_is_counted_and_its_episode_open_again(tmp_path: Path) -> None:
    with open_ledger(tmp_path) as ledger:
        for n in range(3):
            ledger.append(make_row(n))
    lines = (tmp_path / "episodes.jsonl").read_bytes().splitlines(keepends=True)
    lines[1] = b'{"episode_id": "e1", "outc\n'
    (tmp_path / "episodes.jsonl").write_bytes(b"".join(lines))
    assert read_rows(tmp_path).damaged_lines == 1
    with open_ledger(tmp_path) as ledger:
        assert not ledger.finished("e1")
        assert ledger.finished("e2")


def test_a_changed_configuration_is_refused_with_the_changed_keys(tmp_path: Path) -> None:
    with open_ledger(tmp_path, selector={"k": 30, "name": "skillreranker"}):
        pass
    with (
        pytest.raises(ConfigError, match=r"selector\.k: 30 -> 20") as caught,
        open_ledger(tmp_path, selector={"k": 20, "name": "skillreranker"}),
    ):
        pass
    assert "seed" not in caught.value.message


def test_two_writers_at_once_are_refused_and_the_folder_is_free_again_afterwards(tmp_path: Path) -> None:
    with open_ledger(tmp_path), pytest.raises(ConfigError, match="another process"), open_ledger(tmp_path):
        pass
    with open_ledger(tmp_path) as ledger:
        ledger.append(make_row(0))
    assert len(read_rows(tmp_path).rows) == 1


def write_until_killed(folder: Path) -> None:
    with open_ledger(folder) as ledger:
        for n in range(1_000_000):
            ledger.append(make_row(n), {"n": n, "padding": "x" * 5000})


def test_sigkill_while_writing_leaves_whole_rows_only(tmp_path: Path) -> None:
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
        assert list(ledger.rows) == [f"e{n}" for n in range(count)]
        ledger.append(make_row(count), {"n": count, "padding": ""})
    assert [plain["n"] for plain in read_trajectories(tmp_path)] == list(range(count + 1))


def test_a_full_disk_is_one_clear_error_and_earlier_rows_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_ledger(tmp_path) as ledger:
        ledger.append(make_row(0), {"n": 0})
        monkeypatch.setattr(os, "fsync", _no_space)
        with pytest.raises(DataError, match="cannot record"):
            ledger.append(make_row(1), {"n": 1})
    monkeypatch.undo()
    assert read_rows(tmp_path).rows[0].episode_id == "e0"


def _no_space(_: int) -> None:
    raise OSError(28, "No space left on device")


def test_a_folder_that_cannot_be_made_is_a_data_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DataError, match="cannot be written"), open_ledger(tmp_path / "file" / "cell"):
        pass


def test_a_missing_or_broken_config_is_a_data_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not a cell"):
        read_config(tmp_path)
    (tmp_path / "config.json").write_bytes(b"{")
    with pytest.raises(DataError, match="not a cell"):
        read_config(tmp_path)


def test_changed_keys_names_every_difference_and_nothing_else() -> None:
    old = {"a": 1, "b": {"c": [1, 2], "d": "x"}, "gone": True}
    new = {"a": 1, "b": {"c": [1, 3], "d": "x"}, "new": None}
    assert changed_keys(old, new) == ["b.c: [1, 2] -> [1, 3]", "gone: True -> None"]
    assert changed_keys(old, orjson.loads(orjson.dumps(old))) == []


def test_rows_of_earlier_versions_are_read_with_what_they_do_not_know(tmp_path: Path) -> None:
    with open_ledger(tmp_path) as ledger:
        ledger.append(make_row(0, reasoning_tokens=7, cost=0.5))
    path = tmp_path / "episodes.jsonl"
    plain = orjson.loads(path.read_bytes())
    del plain["reasoning_tokens"], plain["cost"]
    path.write_bytes(orjson.dumps(plain) + b"\n")
    content = read_rows(tmp_path)
    assert content.damaged_lines == 0
    (row,) = content.rows
    assert (row.reasoning_tokens, row.cost) == (0, None)
    with open_ledger(tmp_path) as ledger:
        assert ledger.finished("e0")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("episode_id", "[]"),
        ("task_id", '["x"]'),
        ("task_type", "null"),
        ("outcome", "5"),
        ("outcome", '"won_big"'),
        ("reward", "null"),
        ("success", '"yes"'),
        ("env_steps", "1.5"),
        ("prompt_tokens", "true"),
        ("skills", '"abc"'),
        ("marks", "[1, null]"),
        ("error", "{}"),
        ("trajectory_offset", "0.5"),
        ("cost", '"dear"'),
        ("wall_seconds", "NaN"),
        ("wall_seconds", "1e999"),
    ],
)
def test_a_row_with_a_value_of_another_kind_is_damaged(tmp_path: Path, name: str, value: str) -> None:
    whole = asdict(make_row(1))
    odd = {**asdict(make_row(0)), name: "HERE"}
    lines = [orjson.dumps(odd).replace(b'"HERE"', value.encode()), orjson.dumps(whole)]
    (tmp_path / "episodes.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    content = read_rows(tmp_path)
    assert [row.episode_id for row in content.rows] == ["e1"]
    assert content.damaged_lines == 1


def test_a_ledger_that_cannot_be_read_is_a_data_error(tmp_path: Path) -> None:
    (tmp_path / "episodes.jsonl").mkdir()
    with pytest.raises(DataError, match="cannot be read"):
        read_rows(tmp_path)
