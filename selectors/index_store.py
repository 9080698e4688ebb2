"""What is computed once for a library and kept on disk: vectors, graphs, links, needs."""

from __future__ import annotations

import logging
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from skillarena.conf.errors import LibraryError
from skillarena.selectors.cache import digest
from skillarena.selectors.measure import offline

_LOG = logging.getLogger(__name__)
_LOCK_TIMEOUT_S = 6 * 3600.0
_STORED = np.dtype("<f4")
_FORMAT = "index/2"
"""Raise the number when the form of the files changes."""
_CHECK = 4
"""Bytes of the checksum behind the content: rows of numbers begin where pages do, which a search would notice."""
_START = zlib.crc32(_FORMAT.encode())
"""What checksums begin with, so that a few zeros are not a sound file."""

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
            _write(path, [content])
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
            # Plain writing tells of a full disk; writing to a mapped file would end the process.
            _write(path, (np.ascontiguousarray(block, dtype=_STORED).data.cast("B") for block in make()))
            mapped = _map(path, rows)
            return make_here() if mapped is None else mapped

        def make_here() -> Vectors:
            return np.concatenate(list(make()))

        return self._kept(self._path(kind, key), lambda path: _map(path, rows), keep, make_here)

    def _path(self, kind: str, key: tuple[str, ...]) -> Path:
        return self._folder / f"{kind}-{digest(_FORMAT, kind, *key).hex()[:32]}"

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
    """The stored content; None where there is none or it is damaged."""
    whole = _mapped(path)
    return None if whole is None else whole[:-_CHECK].tobytes()


def _map(path: Path, rows: int) -> Vectors | None:
    """The stored matrix; None where there is none or it is damaged."""
    whole = _mapped(path)
    with suppress(ValueError):  # not that many rows
        return None if whole is None else whole[:-_CHECK].view(_STORED).reshape(rows, -1)
    return None


def _mapped(path: Path) -> NDArray[np.uint8] | None:
    """A file's bytes, mapped from it; None where there is none, or its checksum does not fit."""
    try:
        whole = np.asarray(np.memmap(path, dtype=np.uint8, mode="r"))
    except (OSError, ValueError):  # missing or empty
        return None
    if zlib.crc32(whole[:-_CHECK].data, _START).to_bytes(_CHECK, "big") == whole[-_CHECK:].tobytes():
        return whole
    _LOG.warning("%s is damaged and will be made again", path)
    return None


def _write(path: Path, blocks: Iterable[bytes | memoryview]) -> None:
    """Put a file in its place when it is whole; a warning where that is impossible."""
    part = path.with_name(f"{path.name}.{uuid4().hex}.part")
    check = _START
    try:
        with part.open("wb") as file:
            for block in blocks:
                check = zlib.crc32(block, check)
                file.write(block)
            file.write(check.to_bytes(_CHECK, "big"))
        part.replace(path)
    except OSError as error:
        _warn(path, error)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _warn(path: Path, error: OSError) -> None:
    _LOG.warning("%s cannot be kept (%s) and is computed anew by every process", path, error)
