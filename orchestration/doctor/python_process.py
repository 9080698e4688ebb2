"""Trying something in a process of its own, which can be ended when it hangs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence


class ProcessFailed(Exception):
    """The process ended badly or was late; the text is its last words."""


def run_python(arguments: Sequence[str], timeout_s: float) -> None:
    """Run this Python with arguments.

    Raises:
        ProcessFailed: with the last line that it wrote about its troubles.
    """
    try:
        done = subprocess.run(
            [sys.executable, *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ProcessFailed(f"not done after {timeout_s:g} s") from None
    if done.returncode != 0:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        raise ProcessFailed(lines[-1] if lines else f"exit code {done.returncode} without a word")
