"""A sweep of many cells gets the open files that it needs, or says so before anything starts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import resource, sys
from contextlib import ExitStack
from pathlib import Path
soft, hard, cells = map(int, sys.argv[1:4])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
from skillarena.orchestration.open_files import allow_open_files
allow_open_files(cells)
with ExitStack() as stack:
    for number in range(cells * 4):
        stack.enter_context((Path(sys.argv[4]) / str(number)).open("w"))
print(resource.getrlimit(resource.RLIMIT_NOFILE))
"""


def run(folder: Path, soft: int, hard: int, cells: int) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", SCRIPT, str(soft), str(hard), str(cells), str(folder)]
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)


def test_a_low_soft_limit_is_raised_as_far_as_needed(tmp_path: Path) -> None:
    done = run(tmp_path, 256, 4096, 300)
    assert (done.returncode, done.stdout) == (0, "(1712, 4096)\n"), done.stderr


def test_a_limit_that_is_enough_is_left_alone(tmp_path: Path) -> None:
    done = run(tmp_path, 2000, 4096, 30)
    assert (done.returncode, done.stdout) == (0, "(2000, 4096)\n"), done.stderr


def test_a_hard_limit_that_is_too_low_is_told_with_both_numbers(tmp_path: Path) -> None:
    done = run(tmp_path, 256, 1024, 300)
    assert done.returncode == 1
    assert "300 cells need about 1,712 open files; this user may have 1,024" in done.stderr
