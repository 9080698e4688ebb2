"""Running the real command line in tests."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from skillarena.orchestration.ledger import EpisodeRow, read_rows

TIMES = {
    "selection_seconds",
    "selection_reused",
    "offline_tokens",
    "wasted_tokens",
    "wall_seconds",
    "lookup_seconds",
    "llm_seconds",
    "env_seconds",
    "finished_at",
    "node",
}
"""Fields that may differ between two runs of the same cell."""


def command(*arguments: str) -> list[str]:
    """The command line of ``skillarena`` with this interpreter."""
    return [sys.executable, "-m", "skillarena.orchestration.cli", *arguments]


def environment(cache: Path, **extra: str) -> dict[str, str]:
    """This process's environment with a cache folder of its own."""
    return {**os.environ, "SKILLARENA_CACHE": str(cache), "COLUMNS": "200", **extra}


def run_command(
    *arguments: str, cache: Path, cwd: Path, timeout: float = 280, **extra: str
) -> subprocess.CompletedProcess[str]:
    """Run ``skillarena`` to its end."""
    return subprocess.run(
        command(*arguments),
        cwd=cwd,
        env=environment(cache, **extra),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def finished_rows(folder: Path) -> int:
    """Lines of all ledgers below the folder that a command runs in."""
    return sum(path.read_bytes().count(b"\n") for path in folder.glob("outputs/cells/*/episodes.jsonl"))


def wait_for_rows(process: subprocess.Popen[str], folder: Path, wanted: int = 1, seconds: float = 200) -> None:
    """Until a running command has finished so many episodes; fails when it ends before."""
    deadline = time.monotonic() + seconds
    while finished_rows(folder) < wanted:
        assert process.poll() is None, "the run ended early"
        assert time.monotonic() < deadline, f"no {wanted} episodes within {seconds:g} s"
        time.sleep(0.05)


def cells(output: Path) -> list[Path]:
    """Cell folders below an output folder."""
    return sorted((output / "cells").iterdir())


def comparable(rows: tuple[EpisodeRow, ...]) -> dict[str, dict[str, Any]]:
    """Rows by task without what may differ between two runs."""
    plain = {}
    for row in rows:
        fields = {name: getattr(row, name) for name in EpisodeRow.__slots__}
        plain[row.task_id] = {
            k: v for k, v in fields.items() if k not in TIMES | {"trajectory_offset", "selection_offset", "attempts"}
        }
    return plain


def rows_of(cell: Path) -> tuple[EpisodeRow, ...]:
    """Rows of a cell folder."""
    return read_rows(cell).rows
