"""The processes of a sweep, by what they do."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil

MARK = "SKILLARENA_CHAOS"
"""Environment variable that all processes of a sweep inherit."""

ROLES = {
    "rollout worker": "ray::RolloutWorker",
    "selection worker": "ray::SelectionWorker",
    "model process (embedder, reranker)": "ray::ModelHost",
    "session process": "ray::SessionDesk",
    "governor of calls": "ray::Governor",
    "router of servers": "ray::Router",
    "keeper of a server": "ray::VLLMServer",
    "backbone server": "-m deterministic_server",
    "raylet": "/raylet/raylet",
}
"""What the command line of a role's processes contains."""


def python_path(*folders: Path) -> str:
    """``PYTHONPATH`` with folders in front of what it is here."""
    return os.pathsep.join([*map(str, folders), *filter(None, [os.environ.get("PYTHONPATH")])])


@dataclass(frozen=True)
class Family:
    """Everything that the commands of one sweep have started.

    Ray's agents overwrite their environment, so they are known by their working folder.

    Args:
        folder: where the commands run; ``MARK`` is its path, a ``#`` and the command's number.
    """

    folder: Path

    def members(self) -> list[psutil.Process]:
        """Those alive, without this process."""
        return [process for process in psutil.process_iter() if process.pid != os.getpid() and self._owns(process)]

    def mark(self, number: int) -> str:
        """Value of ``MARK`` for a command."""
        return f"{self.folder}#{number}"

    def of(self, role: str, number: int) -> list[psutil.Process]:
        """Those of one command that are alive and have a role; what an earlier one left is on its way out."""
        fits = _is_jvm if role == "JVM" else has(ROLES[role])
        return [process for process in self.members() if _mark_of(process) == self.mark(number) and fits(process)]

    def is_gone(self, within_s: float) -> bool:
        """Whether nothing is left in time."""
        ends = time.monotonic() + within_s
        while self.members():
            if time.monotonic() > ends:
                return False
            time.sleep(0.2)
        return True

    def end(self) -> None:
        """Kill what is left; for tests that have failed."""
        for process in self.members():
            try:
                process.kill()
            except psutil.Error:
                continue

    def _owns(self, process: psutil.Process) -> bool:
        try:
            if process.status() == psutil.STATUS_ZOMBIE:
                return False
            return process.cwd() == str(self.folder) or _mark_of(process).startswith(f"{self.folder}#")
        except (psutil.Error, OSError):
            return False


def _mark_of(process: psutil.Process) -> str:
    try:
        return str(process.environ().get(MARK, ""))
    except (psutil.Error, OSError):
        return ""


def _is_jvm(process: psutil.Process) -> bool:
    try:
        return process.name() == "java"
    except psutil.Error:
        return False


def has(words: str) -> Callable[[psutil.Process], bool]:
    """Whether a process's command line contains words."""

    def fits(process: psutil.Process) -> bool:
        try:
            return words in " ".join(process.cmdline())
        except psutil.Error:
            return False

    return fits
