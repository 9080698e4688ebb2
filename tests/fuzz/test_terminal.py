"""What a terminal gets of skills, goals, observations, replies and names commands nothing and reorders nothing."""

from __future__ import annotations

import unicodedata
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from row_factory import make_row
from test_files import CONFIG, SELECTION, SKILL, TRAJECTORY, TURN

from skillarena.conf.errors import SkillArenaError
from skillarena.orchestration.console import print_error
from skillarena.orchestration.explain import explain
from skillarena.orchestration.report.compare import compare
from skillarena.orchestration.report.report_command import report
from skillarena.orchestration.report.show import show
from skillarena.orchestration.selection_store import selection_to_json

BAD = "\x1b[2J\x1b]0;title\x07\x9b31m\x00\x08\u202e\u2066\u200f\u061c\ufeffend"
"""Clears the screen, names the window, rings, turns the line around."""


def check(captured: Any) -> None:
    text = captured.out + captured.err
    assert text
    found = {c for c in text if c not in "\n\t" and unicodedata.category(c) in ("Cc", "Cf", "Cs")}
    assert not found, sorted(map(ascii, found))


@pytest.fixture
def cell(tmp_path: Path) -> Path:
    """A cell whose every text is hostile."""
    config = deepcopy(CONFIG)
    config["cell"]["name"] = BAD  # type: ignore[index]
    for axis in ("benchmark", "split", "selector", "backbone"):
        config["cell"]["axes"][axis] = f"{axis}{BAD}"  # type: ignore[index]
    config["tasks"] = [{"id": f"t{n}", "name": f"task {n}{BAD}", "type": BAD} for n in range(2)]
    skill = replace(SKILL, id=BAD, name=BAD, description=BAD, text=BAD, reason=BAD)
    selection = replace(SELECTION, skills=(skill,), guidance=BAD, marks=(BAD,))
    turn = replace(TURN, reply=BAD, thought=BAD, action=BAD, observation=BAD, tool="", advice=BAD, skills_read=(BAD,))
    played = replace(TRAJECTORY, episode_id="abcd" + "0" * 60, goal=BAD, first_observation=BAD, turns=(turn,))
    lost = replace(turn, action=None, tool=BAD)
    played = replace(played, turns=(turn, lost, replace(lost, tool="")), backbone=BAD, skills=(BAD,))
    row = make_row(0, episode_id=played.episode_id, task_name=BAD, task_type=BAD, skills=(BAD,), marks=(BAD,), node=BAD)
    folder = tmp_path / "cells" / "cell"
    folder.mkdir(parents=True)
    (folder / "config.json").write_bytes(orjson.dumps(config))
    (folder / "episodes.jsonl").write_bytes(
        orjson.dumps(replace(row, trajectory_offset=0, selection_offset=0, error=BAD)) + b"\n"
    )
    (folder / "trajectories.jsonl").write_bytes(orjson.dumps(played.to_dict()) + b"\n")
    plain = orjson.loads(selection_to_json(selection))
    (folder / "selections.jsonl").write_bytes(orjson.dumps({"episode_id": played.episode_id, "selection": plain}))
    return folder


def test_show_of_an_episode_and_of_its_cell(cell: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options: dict[str, Any] = {"outcome": None, "task_type": None, "figure": None}
    for wanted in ("abcd", str(cell), str(cell.parent.parent)):
        for as_json in (False, True):
            assert show(wanted, [cell], as_json=as_json, **options) == 0
            check(capsys.readouterr())


@pytest.mark.slow
def test_report_and_comparison(cell: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report([cell], out=tmp_path / "report", baseline=None, as_json=False)
    check(capsys.readouterr())
    with pytest.raises(SkillArenaError) as caught:  # the same cell twice
        compare(f"{cell}:selector{BAD}", str(cell), as_json=False)
    print_error(caught.value)
    check(capsys.readouterr())


@pytest.mark.parametrize("selector", ["random", "vanilla", "none"])
def test_select(selector: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = {"skill_id": f"id{BAD}", "name": BAD, "description": BAD, "body": BAD}
    (tmp_path / "pool.jsonl").write_bytes(orjson.dumps(line))
    overrides = [f"selector={selector}", "library=paths", f"library.paths=[{tmp_path / 'pool.jsonl'}]"]
    for as_json in (False, True):
        explain(f"put {BAD} in desk", "alfworld", overrides, config_dir=None, everything=True, as_json=as_json)
        check(capsys.readouterr())


def test_an_error_that_quotes_hostile_text(capsys: pytest.CaptureFixture[str]) -> None:
    print_error(SkillArenaError(BAD, BAD))
    check(capsys.readouterr())


@pytest.mark.parametrize("words", [["lint"], ["stats"], ["import"]], ids=" ".join)
@pytest.mark.parametrize("flags", [[], ["--json"]], ids=["table", "json"])
def test_library_commands(words: list[str], flags: list[str], tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from skillarena.orchestration.cli import app

    pool = tmp_path / "pool.jsonl"
    lines = [{"skill_id": f"{n}{BAD}", "name": BAD, "description": BAD, "body": BAD * n} for n in (1, 2)]
    pool.write_bytes(b"\n".join(orjson.dumps(line) for line in [*lines, {"skill_id": BAD}]))
    target = ["--to", str(tmp_path / "out.jsonl")] if words == ["import"] else []
    done = CliRunner().invoke(app, ["library", *words, str(pool), *target, *flags])
    assert done.exit_code in (0, 1), done.output
    assert len(done.stdout) > 20
    found = {c for c in done.output if c not in "\n\t" and unicodedata.category(c) in ("Cc", "Cf", "Cs")}
    assert not found, sorted(map(ascii, found))
