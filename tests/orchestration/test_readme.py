"""The README's own-method example works as printed, and an edit of it is another method."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from command import cells, rows_of, run_command

README = Path(__file__).resolve().parents[2] / "README.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_own_method_example_runs_to_the_letter_and_an_edit_of_it_is_noticed(tmp_path: Path) -> None:
    for block in [*blocks("python"), *blocks("yaml")]:
        name = block.splitlines()[0].removeprefix("# ")
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(block)
    (line,) = (block for block in blocks("sh") if "first_word" in block)
    words = shlex.split(line)
    assert words[:3] == ["PYTHONPATH=.", "skillarena", "run"]
    done = run_command(*words[2:], cache=tmp_path / "cache", cwd=tmp_path, PYTHONPATH=".")
    assert done.returncode == 0, done.stderr
    (cell,) = cells(tmp_path / "outputs")
    chosen = [row.skills for row in rows_of(cell)]
    assert len(chosen) == 2
    assert all(len(skills) == 1 for skills in chosen)

    edited = (tmp_path / "my_selectors.py").read_text().replace("task.goal.split()[0]", "task.goal.split()[-1]")
    (tmp_path / "my_selectors.py").write_text(edited)
    again = run_command(*words[2:], cache=tmp_path / "cache", cwd=tmp_path, PYTHONPATH=".")
    assert "finished earlier" not in again.stderr
    assert len(cells(tmp_path / "outputs")) == 2
