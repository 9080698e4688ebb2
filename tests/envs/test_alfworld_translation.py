"""Translating games in a child process, and keeping the result."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import psutil
import pytest

from skillarena.conf.errors import DataError, EnvError
from skillarena.envs import alfworld_translator
from skillarena.envs.alfworld_translation import translation_of

DOMAIN = """(define (domain walk) (:requirements :adl :typing) (:types agent place)
  (:predicates (at ?a - agent ?p - place) (open ?p - place) (secret ?p - place))
  (:action go :parameters (?a - agent ?from - place ?to - place)
    :precondition (and (at ?a ?from) (open ?to)) :effect (and (not (at ?a ?from)) (at ?a ?to))))"""


def problem(goal: str = "(at me inside)", name: str = "one") -> str:
    return f"""(define (problem {name}) (:domain walk) (:objects me - agent inside - place outside - place)
  (:init (at me outside) (open inside) (open outside)) (:goal {goal}))"""


@pytest.fixture(autouse=True)
def nothing_in_memory() -> None:
    translation_of.cache_clear()


@pytest.fixture
def no_translator() -> None:
    """The next game needs a new child process."""
    alfworld_translator._end_all()


def test_holds_what_names_and_moves_need(tmp_path: Path) -> None:
    found = translation_of(DOMAIN, problem(), tmp_path, 60)
    assert found.sas.startswith("begin_version")
    assert found.objects["inside"] == "place"
    assert found.supertypes["place"] == ["place", "object"]
    assert found.parameters == {"go": [["a", "agent"], ["from", "place"], ["to", "place"]]}
    assert found.changing == ["at"]
    assert ["at", "me", "outside"] in found.initial


def test_is_made_once_and_then_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = translation_of(DOMAIN, problem(), tmp_path, 60)
    translation_of.cache_clear()
    monkeypatch.setattr("skillarena.envs.alfworld_translation.translate", None)
    assert translation_of(DOMAIN, problem(), tmp_path, 60) == made
    assert translation_of(DOMAIN, problem(), tmp_path, 60) is translation_of(DOMAIN, problem(), tmp_path, 60)


def test_other_problems_have_other_files(tmp_path: Path) -> None:
    for name in ("one", "two"):
        translation_of(DOMAIN, problem(name=name), tmp_path, 60)
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("damage", [lambda old: b"nonsense", lambda old: old[:-20], lambda old: b""])
def test_a_damaged_file_is_reported_and_made_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: object
) -> None:
    made = translation_of(DOMAIN, problem(), tmp_path, 60)
    translation_of.cache_clear()
    (file,) = tmp_path.iterdir()
    good = file.read_bytes()
    file.write_bytes(damage(good))  # type: ignore[operator]
    with caplog.at_level(logging.WARNING):
        assert translation_of(DOMAIN, problem(), tmp_path, 60) == made
    assert "damaged" in caplog.text and file.name in caplog.text
    assert list(tmp_path.iterdir()) == [file]
    assert file.read_bytes() == good


@pytest.mark.parametrize(
    ("goal", "complaint"),
    [
        ("(secret inside)", "cannot be reached"),
        ("(near me inside)", "cannot be translated"),
        ("(at me", "cannot be translated"),
    ],
)
def test_bad_pddl_is_a_data_error_and_leaves_no_file(tmp_path: Path, goal: str, complaint: str) -> None:
    with pytest.raises(DataError, match=complaint):
        translation_of(DOMAIN, problem(goal), tmp_path, 60)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("no_translator")
def test_a_translation_that_takes_too_long_ends(tmp_path: Path) -> None:
    with pytest.raises(EnvError, match=r"0\.001 s"):
        translation_of(DOMAIN, problem(), tmp_path, 0.001)
    assert list(tmp_path.iterdir()) == []
    assert translators() == []


@pytest.mark.usefixtures("no_translator")
def test_a_killed_translation_is_no_fault_of_the_game(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killer = tmp_path / "killer"
    killer.write_text("#!/bin/sh\nkill -9 $$\n")
    killer.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(killer))
    with pytest.raises(EnvError, match="signal 9"):
        translation_of(DOMAIN, problem(), tmp_path / "cache", 60)


def translators() -> list[psutil.Process]:
    """Child processes that translate, or wait to."""
    return [child for child in psutil.Process().children() if "skillarena.envs.alfworld_translate" in child.cmdline()]


@pytest.mark.usefixtures("no_translator")
def test_one_child_translates_game_after_game(tmp_path: Path) -> None:
    first = translation_of(DOMAIN, problem(), tmp_path / "one", 60)
    (child,) = translators()
    translation_of(DOMAIN, problem(name="two"), tmp_path / "one", 60)
    translation_of.cache_clear()
    assert translation_of(DOMAIN, problem(), tmp_path / "two", 60) == first
    assert translators() == [child]


@pytest.mark.usefixtures("no_translator")
def test_threads_translate_at_the_same_time(tmp_path: Path) -> None:
    names = [f"game-{number}" for number in range(6)]
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda name: translation_of(DOMAIN, problem(name=name), tmp_path, 60), names))
    assert len({translation.sas for translation in found}) == 1
    assert 1 <= len(translators()) <= 3


@pytest.mark.usefixtures("no_translator")
def test_a_child_that_died_while_it_waited_is_replaced(tmp_path: Path) -> None:
    translation_of(DOMAIN, problem(), tmp_path, 60)
    (child,) = translators()
    child.kill()
    while child.status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.01)
    assert translation_of(DOMAIN, problem(name="two"), tmp_path, 60).changing == ["at"]


@pytest.mark.usefixtures("no_translator")
def test_a_stuck_child_is_ended_and_replaced(tmp_path: Path) -> None:
    translation_of(DOMAIN, problem(), tmp_path, 60)
    (child,) = translators()
    child.suspend()
    with pytest.raises(EnvError, match=r"0\.2 s"):
        translation_of(DOMAIN, problem(name="two"), tmp_path, 0.2)
    assert translators() == []
    assert translation_of(DOMAIN, problem(name="two"), tmp_path, 60).changing == ["at"]


def test_a_bad_game_does_not_spoil_the_next_one(tmp_path: Path) -> None:
    with pytest.raises(DataError):
        translation_of(DOMAIN, problem("(secret inside)"), tmp_path, 60)
    assert translation_of(DOMAIN, problem(), tmp_path, 60).changing == ["at"]


def test_the_child_ends_with_its_parent_however_that_ends(tmp_path: Path) -> None:
    code = f"""
from pathlib import Path
from skillarena.envs.alfworld_translation import translation_of
translation_of({DOMAIN!r}, {problem()!r}, Path({str(tmp_path)!r}), 60)
print("translated", flush=True)
input()
"""
    parent = psutil.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert parent.stdout.readline() == b"translated\n"
    (child,) = parent.children()
    parent.kill()
    parent.communicate(timeout=10)
    assert psutil.wait_procs([child], timeout=10)[1] == []


def test_a_missing_translator_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("skillarena.envs.alfworld_translation.version", missing)
    with pytest.raises(EnvError, match=r"skillarena\[alfworld\]"):
        translation_of(DOMAIN, problem(), tmp_path, 60)


def test_a_folder_that_cannot_be_written_is_an_env_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvError, match="cannot be used"):
        translation_of(DOMAIN, problem(), tmp_path / "file" / "cache", 60)


def test_this_process_keeps_its_arguments_and_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, output = list(sys.argv), sys.stdout
    translation_of(DOMAIN, problem(), tmp_path, 60)
    assert sys.argv == arguments
    assert sys.stdout is output
    assert capsys.readouterr() == ("", "")
