"""What a shell is offered after the command's name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(sys.executable).with_name("skillarena")  # completion goes by the program's name
ROOT = Path(__file__).parents[2]
OWN = str(ROOT / "examples" / "add_selector" / "conf")
CHOICES = {path.stem for path in (ROOT / "conf" / "selector").glob("*.yaml")}


def ask(**variables: str) -> str:
    done = subprocess.run(
        [SCRIPT], env={**os.environ, **variables}, capture_output=True, text=True, timeout=60, check=False
    )
    return done.stdout


def bash(line: str) -> list[str]:
    """Offers at the end of a line whose words are divided as bash divides them; a space at the end begins a word."""
    at = len(line.split()) - (0 if line.endswith(" ") else 1)
    return ask(_SKILLARENA_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD=str(at)).split()


def test_commands_are_offered() -> None:
    assert {"run", "report", "retrieve-eval"} <= set(bash("skillarena r"))


@pytest.mark.parametrize("name", ["run", "plan", "select task", "retrieve-eval"])
def test_choices_are_offered_where_bash_ends_a_word_at_the_sign(name: str) -> None:
    assert set(bash(f"skillarena {name} selector =")) == CHOICES
    assert bash(f"skillarena {name} selector = vec") == ["vector", "vector_top2"]
    assert bash(f"skillarena {name} selector = none,vec") == ["none,vector", "none,vector_top2"]


def test_groups_are_offered_then_their_choices() -> None:
    offered = bash("skillarena run ")
    assert {"selector=", "benchmark=", "experiment=", "seed=0"} <= set(offered)
    assert set(bash("skillarena run -m sele")) == {f"selector={choice}" for choice in CHOICES}


def test_experiments_are_offered_also_in_a_list() -> None:
    assert {"experiment=table1", "experiment=laptop"} <= set(bash("skillarena run exp"))
    assert bash("skillarena run experiment = [table1,lap") == ["[table1,laptop"]


def test_keys_of_the_choice_are_offered_with_their_values() -> None:
    assert bash("skillarena run selector.k") == ["selector.k=30"]
    assert bash("skillarena run selector = vector selector.") == ["selector.top_k=1"]
    assert bash("skillarena run benchmark = alfworld_seen benchmark.sp") == ["benchmark.split=valid_seen"]


def test_choices_of_a_folder_of_ones_own_are_offered() -> None:
    assert bash(f"skillarena run --config-dir {OWN} selector = rare") == ["rare_words"]


def test_benchmarks_are_offered_to_an_option() -> None:
    assert "scienceworld" in bash("skillarena select task --benchmark sci")


def test_whole_words_with_their_meaning_are_offered_to_zsh_and_fish() -> None:
    zsh = ask(_SKILLARENA_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS="skillarena run selector=vec")
    assert '"selector=vector":"The skills whose name' in zsh
    fish = ask(
        _SKILLARENA_COMPLETE="complete_fish",
        _TYPER_COMPLETE_ARGS="skillarena run selector=vec",
        _TYPER_COMPLETE_FISH_ACTION="get-args",
    )
    assert "selector=vector\tThe skills whose name" in fish


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_a_shell_is_shown_and_installed(shell: str, tmp_path: Path) -> None:
    env = {**os.environ, "HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}  # any shell's

    def skillarena(flag: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([SCRIPT, flag, shell], env=env, capture_output=True, text=True, timeout=60, check=False)

    shown, done = skillarena("--show-completion"), skillarena("--install-completion")
    assert f"_SKILLARENA_COMPLETE=complete_{shell}" in shown.stdout, shown
    assert done.returncode == 0, done.stderr
    assert any("_COMPLETE" in path.read_text() for path in tmp_path.rglob("*") if path.is_file())
