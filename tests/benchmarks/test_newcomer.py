"""The first hour of a newcomer is timed with the commands that the pages show."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import newcomer


def test_the_guide_is_followed_to_the_letter() -> None:
    commands = newcomer.commands_of((newcomer.ROOT / newcomer.GUIDE / "README.md").read_text())
    assert [command.split()[1:3] for command in commands] == [
        ["skillarena", "run"],
        ["skillarena", "select"],
        ["skillarena", "retrieve-eval"],
    ]


def test_a_step_is_timed_and_stops_at_the_first_command_that_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert newcomer.play("good", ["echo one", "seq 20"], tmp_path, dict(os.environ))
    assert not newcomer.play("bad", ["echo two; exit 3", "touch never"], tmp_path, dict(os.environ))
    said = capsys.readouterr().out.splitlines()
    assert said == [
        "== good: 0 min 0 s, exit code 0",
        *map(str, range(15, 21)),
        "== bad: 0 min 0 s, exit code 3",
        "two",
    ]
    assert list(tmp_path.iterdir()) == []
