"""Files of folders, zips and tars: every name is checked before the first byte is written."""

from __future__ import annotations

import gzip
import lzma
import os
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO

from skillarena.conf.errors import DataError

ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2")
"""Endings of archives that are read."""

_DAMAGE = (
    zipfile.BadZipFile,
    tarfile.TarError,
    gzip.BadGzipFile,
    lzma.LZMAError,
    zlib.error,
    EOFError,
    NotImplementedError,
)
_AGAIN = "copy or download it again"

Wanted = Callable[[PurePosixPath], bool]


@dataclass(frozen=True, slots=True)
class Member:
    """A plain file."""

    path: PurePosixPath
    """Relative to the folder or archive it is in; never leads out of it."""
    size: int
    """Bytes."""
    open: Callable[[], IO[bytes]]


def is_archive(path: Path) -> bool:
    """Whether a file's name says that it is an archive."""
    return path.name.lower().endswith(ARCHIVES)


@contextmanager
def members(source: Path, wanted: Wanted) -> Iterator[list[Member]]:
    """The wanted plain files of a folder or an archive, in an order in which they can be read quickly.

    Args:
        source: a folder, or a file whose name ends with one of ``ARCHIVES``.
        wanted: decides by path.

    Raises:
        DataError: the source is missing or damaged (inside the block, too), an entry's name leads out of the archive,
            or a wanted entry is a link or needs a password.
    """
    try:
        if source.is_dir():
            yield list(_of_folder(source, wanted))
        elif zipfile.is_zipfile(source):
            with zipfile.ZipFile(source) as packed:
                yield list(_of_zip(source, packed, wanted))
        elif source.name.lower().endswith(".zip"):
            raise zipfile.BadZipFile("its directory, which comes last, is missing")
        else:
            with tarfile.open(source) as packed_tar:
                yield list(_of_tar(source, packed_tar, wanted))
    except _DAMAGE as error:
        raise DataError(f"{source} is no whole archive: {error}", _AGAIN) from error
    except FileNotFoundError as error:
        raise DataError(f"there is no {error.filename or source}", "check the path") from error
    except OSError as error:
        reason = f"{error.filename or source}: {error.strerror or error}"
        raise DataError(reason, "mend that and repeat the command") from error


def place(member: Member, target: Path) -> bool:
    """Put a file where it belongs once all of it is there; False where one of the same size is there already.

    Raises:
        DataError: it cannot be written.
    """
    if target.is_file() and target.stat().st_size == member.size:
        return False
    part = target.with_name(f"{target.name}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with member.open() as source, part.open("wb") as file:
            shutil.copyfileobj(source, file)
        part.replace(target)
    except gzip.BadGzipFile:  # of the archive, which its reader reports
        raise
    except OSError as error:
        raise DataError(
            f"{target} cannot be written: {error.strerror or error}", "make room or choose another folder, and repeat"
        ) from error
    return True


def check_space(files: list[Member], folder: Path) -> None:
    """Whether files fit on a disk, by the sizes they claim; reading never goes beyond those.

    Raises:
        DataError: they do not.
    """
    needed, free = sum(file.size for file in files), shutil.disk_usage(folder).free
    if needed > free:
        raise DataError(
            f"{needed:,} bytes are to be written below {folder}, and {free:,} are free",
            "free some space, or write to another disk",
        )


def _of_folder(root: Path, wanted: Wanted) -> Iterator[Member]:
    for name, folders, files in os.walk(root):
        folders.sort()
        for file in sorted(files):
            path = Path(name, file)
            inside = PurePosixPath(path.relative_to(root).as_posix())
            if wanted(inside) and path.is_file():
                yield Member(inside, path.stat().st_size, partial(_read, path))


def _of_zip(source: Path, packed: zipfile.ZipFile, wanted: Wanted) -> Iterator[Member]:
    for entry in packed.infolist():
        path = _inside(source, entry.filename)
        if entry.is_dir() or not wanted(path):
            continue
        if stat.S_ISLNK(entry.external_attr >> 16):
            raise DataError(f"{source}: {entry.filename!r} is a link", "pack the file it leads to")
        if entry.flag_bits & 1:
            raise DataError(f"{source}: {entry.filename!r} needs a password", "unpack the archive and give its folder")
        yield Member(path, entry.file_size, partial(packed.open, entry))


def _of_tar(source: Path, packed: tarfile.TarFile, wanted: Wanted) -> Iterator[Member]:
    for entry in packed.getmembers():
        path = _inside(source, entry.name)
        if entry.isdir() or not wanted(path):
            continue
        if not entry.isfile():
            raise DataError(f"{source}: {entry.name!r} is a link or a device", "pack the file it leads to")
        yield Member(path, entry.size, partial(_extract, packed, entry))


def _read(path: Path) -> IO[bytes]:
    return path.open("rb")


def _extract(packed: tarfile.TarFile, entry: tarfile.TarInfo) -> IO[bytes]:
    file = packed.extractfile(entry)
    if file is None:
        raise tarfile.TarError(f"{entry.name} is no file")
    return file


def _inside(source: Path, name: str) -> PurePosixPath:
    path = PurePosixPath(name.replace("\\", "/"))
    drive = len(name) > 1 and name[1] == ":"
    if path.is_absolute() or drive or ".." in path.parts or "\0" in name:
        raise DataError(f"{source}: the entry {name!r} leads out of the archive", "do not trust it; get another copy")
    return path
