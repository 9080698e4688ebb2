"""Becomes a Python command that ends when the process that started it ends.

Run by path, with the parent's process id and the command's arguments. A program of its own, because code between fork
and exec of a process with threads, which every Ray worker has, may hang.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(parent: str, *arguments: str) -> None:
    """Replace this process by ``python ARGUMENTS``."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)  # it survives the exec
    if os.getppid() != int(parent):  # it ended before the line above
        sys.exit(1)
    os.execv(sys.executable, [sys.executable, *arguments])  # noqa: S606


if __name__ == "__main__":
    main(*sys.argv[1:])
