"""Stacks of the driver itself, should its loop stand still."""

from __future__ import annotations

import faulthandler
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def watched(path: Path, limit_s: float) -> Iterator[Callable[[], None]]:
    """Every ``limit_s`` seconds without a beat, the stacks of all threads of this process are added to a file.

    Args:
        path: the file; its folder is made if missing, and a file that stays empty is removed at the end.
        limit_s: seconds.

    Yields:
        What to call once in a while.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:

        def beat() -> None:
            faulthandler.dump_traceback_later(limit_s, repeat=True, file=file)

        beat()
        try:
            yield beat
        finally:
            faulthandler.cancel_dump_traceback_later()
            if not path.stat().st_size:
                path.unlink()
                _remove_empty(path.parent)


def _remove_empty(folder: Path) -> None:
    if not any(folder.iterdir()):
        folder.rmdir()
