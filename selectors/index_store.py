"""What is computed once for a library and kept on disk: graphs, links, needs."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from skillarena.conf.errors import LibraryError
from skillarena.selectors.cache import digest
from skillarena.selectors.measure import offline

_LOG = logging.getLogger(__name__)
_LOCK_TIMEOUT_S = 6 * 3600.0


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
        from filelock import FileLock, Timeout

        path = self._folder / f"{kind}-{digest(kind, *key).hex()[:32]}"
        with offline():
            stored = _read(path)
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
                _LOG.warning("%s cannot be kept (%s) and is computed anew by every process", path, error)
                return make()
            try:
                stored = _read(path)
                return stored if stored is not None else _keep(path, make())
            finally:
                lock.release()


def _read(path: Path) -> bytes | None:
    with suppress(OSError):
        return path.read_bytes()
    return None


def _keep(path: Path, content: bytes) -> bytes:
    part = path.with_name(f"{path.name}.{uuid4().hex}.part")
    try:
        part.write_bytes(content)
        part.replace(path)
    except OSError as error:
        _LOG.warning("%s cannot be kept (%s) and is computed anew by every process", path, error)
        with suppress(OSError):
            part.unlink()
    return content
