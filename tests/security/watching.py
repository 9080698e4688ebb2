"""Runs the command line and looks at all its processes while it works."""

from __future__ import annotations

import subprocess
import threading
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from command import command, environment

_LOOK_EVERY_S = 0.2


@dataclass
class Watched:
    """A command that has ended, and what was seen of it."""

    code: int = -1
    output: str = ""
    """Standard output and error."""
    commands: set[str] = field(default_factory=set)
    """Command lines and titles of all its processes."""
    listening: set[tuple[str, str]] = field(default_factory=set)
    """Process names and addresses they listened on."""


def watch(*arguments: str, cache: Path, cwd: Path, timeout: float = 280, **extra: str) -> Watched:
    """Run ``skillarena`` to its end."""
    return watch_program(command(*arguments), cwd=cwd, env=environment(cache, **extra), timeout=timeout)


def watch_program(words: list[str], *, cwd: Path, env: dict[str, str], timeout: float = 280) -> Watched:
    """Run any program to its end."""
    watched = Watched()
    with subprocess.Popen(
        words, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        ended = threading.Event()
        watcher = threading.Thread(target=_look, args=(psutil.Process(process.pid), watched, ended))
        watcher.start()
        try:
            watched.output, _ = process.communicate(timeout=timeout)
        finally:
            ended.set()
            process.kill()
            watcher.join()
    watched.code = process.returncode
    return watched


def _look(root: psutil.Process, watched: Watched, ended: threading.Event) -> None:
    while not ended.wait(_LOOK_EVERY_S):
        try:
            family = [root, *root.children(recursive=True)]
        except psutil.Error:
            return
        for process in family:
            try:
                watched.commands.add(" ".join(process.cmdline()))
                for connection in process.net_connections("inet"):
                    if connection.status == psutil.CONN_LISTEN:
                        watched.listening.add((process.name(), connection.laddr.ip))
            except psutil.Error:  # it has just ended
                continue
