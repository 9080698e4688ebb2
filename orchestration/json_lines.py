"""Append-only files of JSON lines that survive a process dying in the middle of one."""

from __future__ import annotations

import errno
import logging
import os
from io import FileIO
from pathlib import Path
from typing import Any

import orjson

log = logging.getLogger(__name__)


class JsonLines:
    """One writer of one file. A torn last line (a process that died while writing) is cut off when it is opened.

    Raises ``OSError`` when the disk refuses.

    Args:
        path: the file; made when missing.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = FileIO(path, "a+")
        size = self._file.seek(0, os.SEEK_END)
        whole = _end_of_last_line(self._file, size)
        if whole < size:
            log.warning("%s/%s: the last line was torn and is dropped", path.parent, path.name)
            self._file.truncate(whole)

    def append(self, plain: Any) -> int:
        """Append one line and wait until it is on disk; returns its offset."""
        offset = self._file.seek(0, os.SEEK_END)
        line = orjson.dumps(plain) + b"\n"
        if self._file.write(line) != len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(self._file.fileno())
        return offset

    def drop_behind(self, offset: int) -> None:
        """Drop every line behind the one at ``offset``; all lines when it is -1."""
        end = 0
        if offset >= 0:
            with self._path.open("rb") as lines:
                lines.seek(offset)
                end = offset + len(lines.readline())
        if end < self._file.seek(0, os.SEEK_END):
            self._file.truncate(end)

    def close(self) -> None:
        """Close the file; safe to repeat."""
        self._file.close()


def _end_of_last_line(file: FileIO, size: int) -> int:
    """Offset just behind the last line feed; 0 when there is none."""
    end = size
    while end > 0:
        begin = max(0, end - 65536)
        file.seek(begin)
        at = file.read(end - begin).rfind(b"\n")
        if at >= 0:
            return begin + at + 1
        end = begin
    return 0
