"""The simulator's quicker classes: built from their source, fitting the simulator, and answering like the library."""

from __future__ import annotations

import re
import shutil
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from skillarena import envs
from skillarena.envs.scienceworld_jvm import Jvm, JvmOptions
from skillarena.envs.scienceworld_quick import quick_jar
from skillarena.envs.scienceworld_world import jar

JAVA = Path(envs.__path__[0]) / "scienceworld_java"
TEXTS = [
    "",
    " ",
    "  ",
    "a",
    "a b",
    " a b ",
    "a  b",
    "a\tb",
    "a \n b",
    "a\x0bb",
    "a\x00 b",
    "ü \u2003 ö",
    "\r\n",
    "x" * 300,
]


def test_an_unknown_simulator_runs_unchanged_and_that_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    other = tmp_path / "other.jar"
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("scala/collection/mutable/FlatHashTable.class", (JAVA / "Quick.class").read_bytes())
    assert quick_jar(other) is None
    assert "0 references" in caplog.text
    broken = tmp_path / "broken.jar"
    broken.write_bytes(b"no archive")
    assert quick_jar(broken) is None


def test_three_classes_are_changed_and_one_is_new() -> None:
    pytest.importorskip("scienceworld")
    content = quick_jar(jar())
    assert content is not None
    assert content is quick_jar(jar())
    assert content.count(b"skillarena/Quick.class") == 2


def test_the_class_is_what_its_source_compiles_to(tmp_path: Path) -> None:
    pytest.importorskip("scienceworld")
    compiler = shutil.which("javac")
    if compiler is None:
        pytest.skip("no javac here")
    command = [compiler, "--release", "8", "-g:none", "-cp", str(jar()), "-d", str(tmp_path), str(JAVA / "Quick.java")]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    assert (tmp_path / "skillarena" / "Quick.class").read_bytes() == (JAVA / "Quick.class").read_bytes()


@pytest.fixture(scope="module")
def call() -> Iterator[Callable[..., Any]]:
    """Calls a method of ``Quick`` in a Java process."""
    pytest.importorskip("scienceworld")
    jvm = Jvm(JvmOptions())
    try:
        gateway = jvm.connect(30)
        java = gateway.jvm.java
        path = jvm.class_path(jar())
        urls = gateway.new_array(java.net.URL, len(path))
        for index, one in enumerate(path):
            urls[index] = java.net.URL(one.as_uri())
        loader = java.net.URLClassLoader(urls, java.lang.ClassLoader.getPlatformClassLoader())
        methods = {method.getName(): method for method in loader.loadClass("skillarena.Quick").getMethods()}

        def invoke(name: str, *arguments: Any) -> Any:
            given = gateway.new_array(java.lang.Object, len(arguments))
            for index, argument in enumerate(arguments):
                given[index] = argument
            return methods[name].invoke(None, given)

        yield invoke
    finally:
        jvm.kill()


@pytest.mark.slow
@pytest.mark.parametrize("text", TEXTS)
def test_blanks_become_single_as_with_the_regular_expression(call: Callable[..., Any], text: str) -> None:
    assert call("singleBlanks", text, "\\s+", " ") == re.sub("[ \t\n\x0b\f\r]+", " ", text)


@pytest.mark.slow
def test_things_that_are_not_the_simulators_are_compared_by_the_library(call: Callable[..., Any]) -> None:
    assert call("same", "a", "a") is True
    assert call("same", "a", "b") is False
    assert call("same", 1, 1.0) is True  # as Scala has it
    assert call("same", None, None) is True
    assert call("same", None, "a") is False
    assert call("same", "a", None) is False
