"""What is computed once for a library and kept on disk: vectors, graphs, links, needs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, TypeVar
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from skillarena.conf.errors import LibraryError
from skillarena.selectors.cache import digest
from skillarena.selectors.measure import offline

_LOG = logging.getLogger(__name__)
_LOCK_TIMEOUT_S = 6 * 3600.0
_STORED = np.dtype("<f4")

Vectors = NDArray[np.float32]
_Content = TypeVar("_Content")


class IndexStore:
    """Files by key in one folder. A folder that cannot be written costs time, not the run.

    Args:
        folder: made when needed.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get_or_make(self, kind: str, *key: str, make: Callable[[], bytes]) -> bytes:
        """The stored bytes, or those of ``make``, which are then kept. Of several processes one computes.

        Args:
            kind: what it is, for the file's name.
            key: everything the content depends on (library fingerprint, model identities, options, format number).
            make: computes it; its time counts as offline work.

        Raises:
            LibraryError: another process has been computing the same for hours.
        """

        def keep(path: Path) -> bytes:
            content = make()
            _write(path, lambda file: file.write(content))
            return content

        return self._kept(self._path(kind, key), _read, keep, make)

    def vectors_or_make(self, kind: str, *key: str, rows: int, make: Callable[[], Iterable[Vectors]]) -> Vectors:
        """A stored matrix, mapped from its file: all processes of a machine share one copy of it in memory.

        Args:
            kind: as for ``get_or_make``.
            key: likewise.
            rows: of the matrix, 1 or more.
            make: its rows, float32[some, d] at a time; no more are in memory at once. Where the file cannot be written
                it is called again, and the matrix is this process's own.

        Returns:
            float32[rows, d], read-only where it is mapped.

        Raises:
            LibraryError: as for ``get_or_make``.
        """

        def keep(path: Path) -> Vectors:
            _write(path, lambda file: _write_blocks(file, make()))
            mapped = _map(path, rows)
            return make_here() if mapped is None else mapped

        def make_here() -> Vectors:
            return np.concatenate(list(make()))

        return self._kept(self._path(kind, key), lambda path: _map(path, rows), keep, make_here)

    def _path(self, kind: str, key: tuple[str, ...]) -> Path:
        return self._folder / f"{kind}-{digest(kind, *key).hex()[:32]}"

    def _kept(
        self,
        path: Path,
        look: Callable[[Path], _Content | None],
        keep: Callable[[Path], _Content],
        make: Callable[[], _Content],
    ) -> _Content:
        """What ``look`` finds; else what ``keep`` makes while others wait; or ``make`` where nothing can be kept."""
        from filelock import FileLock, Timeout

        with offline():
            stored = look(path)
            if stored is not None:
                return stored
            lock = FileLock(f"{path}.lock", timeout=_LOCK_TIMEOUT_S)
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
                lock.acquire()
            except Timeout:
                raise LibraryError(
                    f"another process has been computing {path} for {_LOCK_TIMEOUT_S:g} s",
                    f"end it, or delete {path}.lock",
                ) from None
            except OSError as error:
                _warn(path, error)
                return make()
            try:
                stored = look(path)
                return keep(path) if stored is None else stored
            finally:
                lock.release()


def _read(path: Path) -> bytes | None:
    with suppress(OSError):
        return path.read_bytes()
    return None


def _map(path: Path, rows: int) -> Vectors | None:
    """The stored matrix; None where there is none or its file is cut off."""
    with suppress(OSError, ValueError):
        return np.asarray(np.memmap(path, dtype=_STORED, mode="r")).reshape(rows, -1)
    return None


def _write_blocks(file: BinaryIO, blocks: Iterable[Vectors]) -> None:
    """The numbers and nothing else, so that rows do not straddle pages, which the search would notice.

    Plain writing tells of a full disk; writing to a mapped file would end the process.
    """
    for block in blocks:
        file.write(np.ascontiguousarray(block, dtype=_STORED).data)


def _write(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Put a file in its place when it is whole; a warning where that is impossible."""
    part = path.with_name(f"{path.name}.{uuid4().hex}.part")
    try:
        with part.open("wb") as file:
            write(file)
        part.replace(path)
    except OSError as error:
        _warn(path, error)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _warn(path: Path, error: OSError) -> None:
    _LOG.warning("%s cannot be kept (%s) and is computed anew by every process", path, error)
