"""A key-value store on disk, shared by any number of threads and processes."""

from __future__ import annotations

import itertools
import logging
import os
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

log = logging.getLogger(__name__)
_T = TypeVar("_T")

_BUSY_SECONDS = 30.0
"""How long a call waits for other writers."""
_CHECK = 4
"""Bytes of the checksum in front of each stored value."""
_KEYS_PER_QUERY = 500
"""SQLite takes at least 999 parameters in one statement."""
_ITEMS_PER_STEP = 1024
_TELL_EVERY_S = 10.0
_STORED = np.dtype("<f4")


def digest(*parts: str) -> bytes:
    """SHA-256 over texts, 32 bytes; where one part ends and the next begins counts."""
    whole = sha256()
    for part in parts:
        data = part.encode("utf-8", errors="surrogatepass")
        whole.update(len(data).to_bytes(8, "big"))
        whole.update(data)
    return whole.digest()


class DiskCache:
    """Bytes by key in one SQLite file.

    A cache never fails a run: a damaged file is moved aside and begun anew, and where the file cannot be read or
    written (read-only or full disk, a lock that is never freed) the cache warns once and is left out from then on.
    Thread-safe; survives pickling (as its path) and forks.

    Args:
        path: the file; it and its folder are made when needed.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._usable = True
        # One connection a thread. The process belongs to the key because a fork must not touch its parent's connection.
        self._connections: dict[tuple[int, int], sqlite3.Connection] = {}

    def __reduce__(self) -> tuple[type[DiskCache], tuple[Path]]:
        return DiskCache, (self.path,)

    def get_many(self, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        """The values of those keys that are stored and undamaged."""
        wanted = list(dict.fromkeys(keys))
        return self._attempt(lambda connection: _select(connection, wanted), {})

    def put_many(self, entries: Mapping[bytes, bytes]) -> None:
        """Store all entries or, where the file refuses, none."""
        self._attempt(lambda connection: _insert(connection, entries), None)

    def _attempt(self, action: Callable[[sqlite3.Connection], _T], otherwise: _T) -> _T:
        if not self._usable:
            return otherwise
        try:
            try:
                return action(self._connection())
            except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
                if not _is_damage(error):
                    raise
                self._begin_anew(error)
                return action(self._connection())
        except (OSError, sqlite3.OperationalError) as error:
            self._usable = False
            log.warning("cache %s cannot be used and is left out from now on: %s", self.path, error)
            return otherwise

    def _connection(self) -> sqlite3.Connection:
        owner = (os.getpid(), threading.get_ident())
        if owner not in self._connections:
            self._connections[owner] = _open(self.path)
        return self._connections[owner]

    def _begin_anew(self, error: Exception) -> None:
        """Move a damaged file aside, unless another process or thread has done so already."""
        connection = self._connections.pop((os.getpid(), threading.get_ident()), None)
        if connection is not None:
            connection.close()
        with _lock(self.path):  # or two would move each other's new file aside
            if _is_sound(self.path):
                return
            aside = next(
                name for number in itertools.count(1) if not (name := Path(f"{self.path}.damaged-{number}")).exists()
            )
            for ending in ("-wal", "-shm", ""):  # the file last: a new one must not meet its predecessor's log
                with suppress(FileNotFoundError):
                    Path(f"{self.path}{ending}").replace(f"{aside}{ending}")
            _connect(self.path).close()
        log.warning("cache %s was damaged (%s); moved to %s and begun anew", self.path, error, aside)


def cached_rows(
    cache: DiskCache,
    keys: Sequence[bytes],
    items: Sequence[_T],
    compute: Callable[[list[_T]], NDArray[np.float32]],
) -> tuple[NDArray[np.float32], int]:
    """Rows of numbers for items, from the cache or computed.

    What is missing is computed and stored some hundred items at a time, so that an interrupted run keeps its progress.

    Args:
        cache: where rows are kept.
        keys: one for each item; at least one.
        items: what ``compute`` takes.
        compute: float32[m] or float32[m, d] for m items; called with distinct missing items only.

    Returns:
        Read-only float32[n, d] (d = 1 for ``compute`` of one dimension) and the number of distinct items computed.
    """
    rows = cache.get_many(keys)
    missing = {key: item for key, item in zip(keys, items, strict=True) if key not in rows}
    order = list(missing)
    began = told = time.monotonic()
    for first in range(0, len(order), _ITEMS_PER_STEP):
        if (now := time.monotonic()) - told > _TELL_EVERY_S:
            told = now
            left = (now - began) / first * (len(order) - first)
            done = f"{first:,} of {len(order):,} vectors or scores computed"
            log.info("%s, about %.0f min left", done, left / 60)
        some = order[first : first + _ITEMS_PER_STEP]
        computed = compute([missing[key] for key in some]).astype(_STORED, copy=False)
        fresh = {key: row.tobytes() for key, row in zip(some, computed, strict=True)}
        cache.put_many(fresh)
        rows.update(fresh)
    stored = np.frombuffer(b"".join(rows[key] for key in keys), dtype=_STORED)
    return stored.astype(np.float32, copy=False).reshape(len(keys), -1), len(missing)


def _lock(path: Path) -> FileLock:
    """Held while a file is made or moved aside: SQLite does not wait for others where it sets the journal mode."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return FileLock(f"{path}.lock", timeout=_BUSY_SECONDS)


def _open(path: Path) -> sqlite3.Connection:
    with _lock(path):
        return _connect(path)


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level="IMMEDIATE", check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("CREATE TABLE IF NOT EXISTS entries (key BLOB PRIMARY KEY, value BLOB NOT NULL)")
    except BaseException:
        connection.close()
        raise
    return connection


def _select(connection: sqlite3.Connection, keys: list[bytes]) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    for first in range(0, len(keys), _KEYS_PER_QUERY):
        some = keys[first : first + _KEYS_PER_QUERY]
        marks = ",".join("?" * len(some))
        rows = connection.execute(f"SELECT key, value FROM entries WHERE key IN ({marks})", some)  # noqa: S608
        found.update((key, value[_CHECK:]) for key, value in rows if _is_whole(value))
    return found


def _insert(connection: sqlite3.Connection, entries: Mapping[bytes, bytes]) -> None:
    with connection:
        checked = ((key, _checksum(value) + value) for key, value in entries.items())
        connection.executemany("INSERT OR REPLACE INTO entries VALUES (?, ?)", checked)


def _is_whole(stored: object) -> bool:
    return isinstance(stored, bytes) and stored[:_CHECK] == _checksum(stored[_CHECK:])


def _checksum(value: bytes) -> bytes:
    """Guards a value against damage that leaves the file sound; a damaged one counts as missing."""
    return zlib.crc32(value).to_bytes(_CHECK, "big")


def _is_damage(error: Exception) -> bool:
    """Most subclasses of ``DatabaseError`` mean something else: busy, full, read-only, or a mistake of the caller."""
    is_quoted = isinstance(error, UnicodeDecodeError)  # SQLite's message holds the damaged bytes
    return is_quoted or type(error) is sqlite3.DatabaseError or str(error).startswith("no such column")


def _is_sound(path: Path) -> bool:
    try:
        with closing(_connect(path)) as connection:
            connection.execute("SELECT key, value FROM entries LIMIT 0")
            return bool(connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",))
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        if _is_damage(error):
            return False
        raise
