"""Translating games in a child process, and keeping the result."""

from __future__ import annotations

import logging
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from skillarena.conf.errors import DataError, EnvError
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
    monkeypatch.setattr("subprocess.run", None)
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


def test_a_translation_that_takes_too_long_ends(tmp_path: Path) -> None:
    with pytest.raises(EnvError, match=r"0\.001 s"):
        translation_of(DOMAIN, problem(), tmp_path, 0.001)
    assert list(tmp_path.iterdir()) == []


def test_a_killed_translation_is_no_fault_of_the_game(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killer = tmp_path / "killer"
    killer.write_text("#!/bin/sh\nkill -9 $$\n")
    killer.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(killer))
    with pytest.raises(EnvError, match="signal 9"):
        translation_of(DOMAIN, problem(), tmp_path / "cache", 60)


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
