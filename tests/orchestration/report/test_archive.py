"""Cells as folders, output folders and sweep files hold them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import orjson
import pytest
from report_cells import LOST, make_cell

from skillarena.conf.errors import DataError
from skillarena.orchestration.report.archive import cell_folders, load, read_cell


def change_config(cell: Path, changes: dict[str, Any]) -> None:
    """Replace keys of a cell's ``config.json``."""
    path = cell / "config.json"
    path.write_bytes(orjson.dumps(orjson.loads(path.read_bytes()) | changes))


def sweep_of(root: Path, *cells: Path) -> Path:
    """A sweep file as ``run`` leaves it."""
    path = root / "sweeps" / "0123456789ab.json"
    path.parent.mkdir()
    names = [f"../cells/{cell.name}" for cell in cells]
    path.write_bytes(orjson.dumps({"sweep": "0123456789ab", "cells": names}))
    return path


def test_reads_what_the_ledger_wrote(tmp_path: Path) -> None:
    folder = make_cell(tmp_path, selector="vector_top2", rewards=[100.0, None, LOST, 30.0], seed=3, library_size=17)
    cell = read_cell(folder)
    assert (cell.axes["selector"], cell.axes["top_k"], cell.axes["seed"]) == ("vector", "2", "3")
    assert (cell.simulated, cell.library_size, cell.resamples) == (True, 17, 1000)
    assert [task.type for task in cell.tasks] == ["pick_and_place_simple", "look_at_obj_in_light"] * 2
    numbers = [cell.tasks.index(next(task for task in cell.tasks if task.id == known)) for known in cell.rows]
    assert numbers == [0, 2, 3], "in task order, without the task that has no episode"
    assert [row.reward for row in cell.rows.values()] == [100.0, None, 30.0]


def test_a_torn_last_line_is_an_episode_that_is_missing(tmp_path: Path) -> None:
    folder = make_cell(tmp_path, rewards=[100.0, 0.0, 100.0])
    path = folder / "episodes.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    assert len(read_cell(folder).rows) == 2


def test_the_order_of_rows_changes_nothing(tmp_path: Path) -> None:
    folder = make_cell(tmp_path, rewards=[100.0, 0.0, 30.0])
    before = read_cell(folder)
    path = folder / "episodes.jsonl"
    path.write_bytes(b"".join(reversed(path.read_bytes().splitlines(keepends=True))))
    assert list(read_cell(folder).rows.items()) == list(before.rows.items())


def test_all_ways_to_name_cells_find_the_same(tmp_path: Path) -> None:
    cells = sorted(make_cell(tmp_path, selector=name) for name in ("vector", "none", "random"))
    sweep = sweep_of(tmp_path, *cells)
    assert cell_folders([tmp_path]) == cell_folders([tmp_path / "cells"]) == cells
    assert cell_folders([sweep]) == cells
    assert cell_folders(cells) == cells
    assert cell_folders([cells[1], tmp_path]) == [cells[1], cells[0], cells[2]]
    assert len(load([tmp_path, sweep, tmp_path / "cells" / ".." / "cells"]).cells) == 3


def test_a_removed_folder_of_a_sweep_is_a_problem_and_the_others_are_read(tmp_path: Path) -> None:
    kept, gone = make_cell(tmp_path, selector="vector"), make_cell(tmp_path, selector="none")
    sweep = sweep_of(tmp_path, kept, gone)
    shutil.rmtree(gone)
    archive = load([sweep])
    assert [cell.directory for cell in archive.cells] == [kept.resolve()]
    (problem,) = archive.problems
    assert problem.startswith(gone.name) and "no such file" in problem
    assert str(tmp_path) not in problem, "a report says the same wherever the folder lies"


@pytest.mark.parametrize(
    "changes",
    [
        {"identity": {}},
        {"identity": []},
        {"cell": {"id": "x"}},
        {"cell": {"id": "x", "name": "n", "simulated": True, "axes": {"selector": "vector"}}},
        {"cell": []},
        {"settings": {}},
        {"tasks": [{"id": "t"}]},
        {"tasks": 3},
        {"tasks": []},
    ],
)
def test_a_broken_configuration_is_a_problem_that_names_the_folder(tmp_path: Path, changes: dict[str, Any]) -> None:
    make_cell(tmp_path, selector="vector")
    broken = make_cell(tmp_path, selector="none")
    change_config(broken, changes)
    archive = load([tmp_path])
    assert len(archive.cells) == 1
    (problem,) = archive.problems
    assert problem.startswith(f"{broken.name}/config.json")
    assert "not a cell's configuration" in problem


def test_a_cell_of_an_earlier_version_does_not_know_the_size_of_its_library(tmp_path: Path) -> None:
    cell = make_cell(tmp_path)
    about = orjson.loads((cell / "config.json").read_bytes())["cell"]
    del about["library_size"]
    change_config(cell, {"cell": about})
    assert read_cell(cell).library_size is None


def test_of_two_copies_of_a_cell_the_fuller_one_is_read(tmp_path: Path) -> None:
    whole = make_cell(tmp_path / "a", rewards=[100.0, 0.0])
    part = tmp_path / "b" / "cells" / whole.name
    shutil.copytree(whole, part)
    path = part / "episodes.jsonl"
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    for paths in ([tmp_path / "a", tmp_path / "b"], [tmp_path / "b", tmp_path / "a"]):
        archive = load(paths)
        assert [len(cell.rows) for cell in archive.cells] == [2]
        (problem,) = archive.problems
        assert "same cell" in problem and "1 and 2 episodes" in problem


def test_nothing_to_read_is_an_error_with_a_fix(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no cell to report on") as caught:
        load([tmp_path / "nowhere"])
    assert "output folder" in caught.value.fix
    (tmp_path / "file").write_text("{}")
    with pytest.raises(DataError, match="not a sweep's file"):
        load([tmp_path / "file"])


def test_copies_of_a_cell_are_told_by_what_they_hold_and_not_by_their_order(tmp_path: Path) -> None:
    whole = make_cell(tmp_path / "a", rewards=[100.0, 0.0])
    lost = make_cell(tmp_path / "b", rewards=[100.0, LOST])
    later = make_cell(tmp_path / "c", rewards=[0.0, 0.0], fields={"finished_at": 2e9})
    assert whole.name == lost.name == later.name
    found = [load([tmp_path / name for name in names]) for names in ("abc", "bca", "cba")]
    assert [[cell.directory for cell in archive.cells] for archive in found] == [[later]] * 3
    assert len({archive.problems for archive in found}) == 1 and len(found[0].problems) == 2


def test_what_a_ledger_holds_and_no_table_counts_is_a_problem(tmp_path: Path) -> None:
    cell = make_cell(tmp_path, rewards=[100.0, 0.0, 100.0])
    lines = (cell / "episodes.jsonl").read_bytes().splitlines(keepends=True)
    foreign = orjson.loads(lines[1]) | {"task_id": "other"}
    (cell / "episodes.jsonl").write_bytes(b"\x00garbage\n" + lines[0] + orjson.dumps(foreign) + b"\n" + lines[2][:-9])
    archive = load([tmp_path])
    assert archive.cells[0].scored == 1
    assert [problem.partition(": ")[2].partition(";")[0] for problem in archive.problems] == [
        "2 lines are no rows",
        "1 rows are of tasks that the cell does not have",
    ]


def test_a_ledger_that_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    make_cell(tmp_path, selector="vector")
    broken = make_cell(tmp_path, selector="none")
    (broken / "episodes.jsonl").unlink()
    (broken / "episodes.jsonl").mkdir()
    archive = load([tmp_path])
    assert len(archive.cells) == 1
    assert archive.problems[0].startswith(f"{broken.name}/episodes.jsonl: cannot be read")


def test_a_folder_with_episodes_and_no_configuration_is_a_problem(tmp_path: Path) -> None:
    make_cell(tmp_path, selector="vector")
    headless = make_cell(tmp_path, selector="none")
    (headless / "config.json").unlink()
    archive = load([tmp_path])
    assert len(archive.cells) == 1
    assert archive.problems[0].startswith(f"{headless.name}/config.json")


def test_a_word_that_can_be_no_path_is_a_cell_that_is_not_there() -> None:
    with pytest.raises(DataError, match="no cell to report on"):
        load([Path("a" * 300)])


def test_a_folder_that_only_holds_output_folders_names_them(tmp_path: Path) -> None:
    (tmp_path / "demo" / "cells").mkdir(parents=True)
    with pytest.raises(DataError) as caught:
        load([tmp_path])
    assert f"({tmp_path / 'demo'})" in str(caught.value)
