"""Where a new library goes: made aside under a hidden name, put in place when all of it is there."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from skillarena.conf.errors import LibraryError

_LOCK_S = 5.0


def check_free(target: Path) -> None:
    """Whether nothing would be overwritten.

    Raises:
        LibraryError: something is there.
    """
    if target.is_file() or (target.is_dir() and any(target.iterdir())):
        raise LibraryError(f"{target} exists already", "give --to another name, or remove it first")


@contextmanager
def aside(target: Path) -> Iterator[Path]:
    """A path of the target's name for a file or folder that takes the target's place at the end of the block.

    It does not when the block fails. What an interrupted command left behind is removed first.

    Raises:
        LibraryError: the place cannot be written, or another command is writing the same library.
    """
    hidden = target.with_name(f".{target.name}.part")
    lock = FileLock(target.with_name(f".{target.name}.lock"), timeout=_LOCK_S)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with lock:
            try:
                shutil.rmtree(hidden, ignore_errors=True)
                hidden.mkdir()
                yield hidden / target.name
                if target.is_dir():
                    target.rmdir()
                (hidden / target.name).replace(target)
            finally:
                shutil.rmtree(hidden, ignore_errors=True)
                Path(lock.lock_file).unlink(missing_ok=True)
    except Timeout as error:
        raise LibraryError(f"another command is writing {target}", "wait for it, or give another name") from error
    except OSError as error:
        raise LibraryError(
            f"{error.filename or target} cannot be written: {error.strerror or error}", "choose another --to"
        ) from error
