"""What the command line takes before it does anything, in CPU seconds, so that a busy machine does not matter."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from command import command

pytestmark = pytest.mark.slow


def cpu_seconds(folder: Path, *arguments: str) -> float:
    """Least of three runs: the first one may have to compile modules."""
    taken = []
    for _ in range(3):
        process = subprocess.Popen(command(*arguments), cwd=folder, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        said = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        process.stdout.close()
        assert process.returncode == 0 and said
        taken.append(usage.ru_utime + usage.ru_stime)
    return min(taken)


def test_help_takes_less_than_a_second(tmp_path: Path) -> None:
    assert cpu_seconds(tmp_path, "--help") < 1.0


def test_the_whole_configuration_takes_less_than_three_seconds(tmp_path: Path) -> None:
    assert cpu_seconds(tmp_path, "run", "--cfg", "job") < 3.0
