"""Everything that one process has started, known by a mark that is inherited.

Links from children to parents are lost when a process dies before its children; environment variables stay.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil


def family(variable: str, value: str) -> list[psutil.Process]:
    """Processes, without this one, that started with an environment variable of a value."""
    import psutil

    found = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and process.environ().get(variable) == value:
                found.append(process)
        except (psutil.Error, OSError):  # it has ended, or is somebody else's
            continue
    return found


def end_family(variable: str, value: str, *, leave_s: float = 0.0, within_s: float = 10.0) -> None:
    """Kill those that are left, and wait until they are gone.

    Args:
        variable: as in ``family``.
        value: as in ``family``.
        leave_s: how long they may take to end by themselves before.
        within_s: longest wait for those killed.
    """
    import psutil

    _, left = psutil.wait_procs(family(variable, value), timeout=leave_s)
    for process in left:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs(left, timeout=within_s)
