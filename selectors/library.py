"""A skill library: every readable document of some folders, files and pools, with a list of those that were refused."""

from __future__ import annotations

import gzip
import lzma
import os
import zlib
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from io import BufferedIOBase
from itertools import chain
from pathlib import Path
from stat import S_ISDIR
from typing import Literal, Self

import orjson

from skillarena.conf.errors import ConfigError, LibraryError, nearest
from skillarena.selectors.cache import digest
from skillarena.selectors.interface import Skill
from skillarena.selectors.skill_file import MAX_BYTES, SkillFileError, make_skill_file, parse_skill_file

BUNDLED = "bundled"
"""Path word for the project's own library."""
POOLS = (".jsonl", ".jsonl.gz", ".jsonl.xz")
"""Endings of pools."""
_ON_REJECTION = ("list", "stop")
_MOST_LISTED = 5


@dataclass(frozen=True, slots=True)
class Rejection:
    """A document that is not in the library."""

    source: str
    """Path, or ``file:line`` for a pool."""
    reason: str
    """Why it was refused, one clause."""
    repeat: bool = False
    """The same document is in the library from another path, so nothing is missing."""


@dataclass(frozen=True)
class SkillLibrary:
    """Skills in order of their ids, which are unique; names may repeat.

    Raises ``LibraryError`` when an id occurs twice.
    """

    skills: tuple[Skill, ...]
    rejections: tuple[Rejection, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "skills", tuple(sorted(self.skills, key=lambda skill: skill.id)))
        for earlier, later in zip(self.skills, self.skills[1:], strict=False):
            if earlier.id == later.id:
                raise LibraryError(f"two skills have the id {later.id!r}", "give every skill an id of its own")

    def __len__(self) -> int:
        return len(self.skills)

    @cached_property
    def by_id(self) -> Mapping[str, Skill]:
        """Skills by id."""
        return {skill.id: skill for skill in self.skills}

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over ids and texts as 64 hex digits; where the documents lie does not matter."""
        whole = sha256()
        for skill in self.skills:
            whole.update(digest(skill.id, *_content(skill)))
        return whole.hexdigest()

    @classmethod
    def load(
        cls, paths: Sequence[str | Path], *, limit: int | None = None, rejected: Literal["list", "stop"] = "list"
    ) -> Self:
        """Read skills from any mix of sources.

        Args:
            paths: folders (searched for ``SKILL.md`` at any depth), single ``.md`` files, ``.jsonl``, ``.jsonl.gz`` or
                ``.jsonl.xz`` pools, or the word ``bundled`` for the project's own library.
            limit: keep the first ``limit`` skills in order of id; all when None.
            rejected: what unreadable documents lead to: a ``list`` in ``rejections``, or a ``stop``.

        A document that cannot be used is refused and listed in ``rejections``. An id that occurs again with other
        content gets a suffix taken from that content.

        Raises ``LibraryError`` for a path that is missing, damaged or of another kind, when not one skill is left, and
        with ``rejected="stop"`` for any unreadable document. ``ConfigError`` for another word.
        """
        if isinstance(paths, str | Path):
            raise LibraryError(f"library paths must be a list, not {str(paths)!r}", f"write paths=[{paths}]")
        if limit is not None and limit < 1:
            raise LibraryError(f"library limit is {limit}", "give a positive number, or null for no limit")
        if rejected not in _ON_REJECTION:
            hint = nearest(str(rejected), _ON_REJECTION)
            raise ConfigError(f"library.rejected is {rejected!r}{hint}", f"use one of: {', '.join(_ON_REJECTION)}")
        skills, rejections = read_documents(paths)
        missing = [rejection for rejection in rejections if not rejection.repeat]
        if skills and missing and rejected == "stop":
            raise LibraryError(
                f"{len(missing)} of {len(skills) + len(missing)} skill documents cannot be used{_listed(missing)}",
                "mend or remove them, or set library.rejected=list to run without them",
            )
        if not skills:
            raise LibraryError(
                f"no skill in {', '.join(map(str, paths)) or 'an empty list of paths'}{_listed(rejections)}",
                "name folders that hold SKILL.md files, .md files, .jsonl pools, or the word 'bundled'",
            )
        library = cls(tuple(skills), tuple(rejections))
        return library if limit is None else cls(library.skills[:limit], library.rejections)


def read_documents(
    paths: Iterable[str | Path], *, damaged: Literal["list", "stop"] = "stop"
) -> tuple[list[Skill], list[Rejection]]:
    """All documents of some sources, in the order of those, be they of use or not.

    Args:
        paths: as for ``SkillLibrary.load``.
        damaged: what a pool that breaks off leads to: a ``stop``, or one more rejection in the ``list``.

    Raises ``LibraryError`` for a path that is missing, damaged or of another kind.
    """
    read = _read if damaged == "stop" else _read_what_can_be
    return _with_unique_ids(item for path in paths for item in read(path))


def _read_what_can_be(path: str | Path) -> Iterator[Skill | Rejection]:
    items = _read(path)
    try:
        yield from items
    except LibraryError as error:
        yield Rejection(_shown(path), error.message)


def _listed(rejections: Sequence[Rejection]) -> str:
    shown = "".join(f"\n  {rejection.source}: {rejection.reason}" for rejection in rejections[:_MOST_LISTED])
    return shown + (f"\n  and {len(rejections) - _MOST_LISTED} more" if len(rejections) > _MOST_LISTED else "")


def _with_unique_ids(items: Iterable[Skill | Rejection]) -> tuple[list[Skill], list[Rejection]]:
    skills: dict[str, Skill] = {}
    rejections: list[Rejection] = []
    for item in items:
        if isinstance(item, Rejection):
            rejections.append(item)
            continue
        twin = skills.get(item.id)
        if twin is not None and _content(twin) != _content(item):
            item = replace(item, id=f"{item.id}~{digest(*_content(item)).hex()[:8]}")
            twin = skills.get(item.id)
        if twin is None:
            skills[item.id] = item
        else:
            rejections.append(Rejection(item.source, f"repeats {twin.source}", repeat=True))
    return list(skills.values()), rejections


def _content(skill: Skill) -> tuple[str, ...]:
    return skill.name, skill.description, skill.body, *chain.from_iterable(skill.fields)


def _read(path: str | Path) -> Iterator[Skill | Rejection]:
    if str(path) == BUNDLED:
        return _read_tree(Path(__file__).with_name("bundled"))
    if not str(path):
        raise LibraryError("library.paths holds an empty path", "name a folder or file, or the word 'bundled'")
    path = Path(path).expanduser()
    try:
        is_folder = S_ISDIR(path.stat().st_mode)
    except (OSError, ValueError) as error:
        raise LibraryError(
            f"there is no skill file or folder {str(path)!r} ({error}){nearest(str(path), (BUNDLED,))}",
            "check the path; a relative one starts from the folder in which the program was started",
        ) from error
    if is_folder:
        return _read_tree(path)
    if path.suffix == ".md":
        return iter([_read_document(path, path.resolve().parent.name if _is_skill_file(path.name) else path.stem)])
    if path.name.endswith(POOLS) and path.is_file():
        return _read_pool(path)
    raise LibraryError(
        f"{str(path)!r} is no skill file", "name a folder, a .md file or a .jsonl, .jsonl.gz or .jsonl.xz pool"
    )


def _is_skill_file(name: str) -> bool:
    return name.lower() == "skill.md"


def _read_tree(root: Path) -> Iterator[Skill | Rejection]:
    """Every ``SKILL.md`` below a folder, each real folder read once, links followed as long as they stay in it.

    Somebody else's library could otherwise have any file of this machine read, and sent to a model, by a link to it.
    """
    errors: list[OSError] = []
    home = _home(root)
    visited: set[tuple[int, int]] = set()
    found = False
    for name, folders, files in os.walk(root, followlinks=True, onerror=errors.append):
        folder = Path(name)
        status = folder.stat()
        if (status.st_dev, status.st_ino) in visited:
            folders.clear()
            continue
        visited.add((status.st_dev, status.st_ino))
        astray = [link for link in sorted(folders) if not (folder / link).resolve().is_relative_to(home)]
        yield from (Rejection(_shown(folder / link), _ASTRAY) for link in astray)
        folders[:] = sorted(set(folders).difference(astray))
        for file in sorted(filter(_is_skill_file, (*folders, *files))):
            found = True
            skill_id = root.resolve().name if folder == root else folder.relative_to(root).as_posix()
            if (folder / file).exists() and not (folder / file).resolve().is_relative_to(home):
                yield Rejection(_shown(folder / file), _ASTRAY)
            else:
                yield _read_document(folder / file, skill_id)
    for error in errors:
        yield Rejection(_shown(error.filename), _reason(error))
    if not found:
        pool = next((path for path in sorted(root.rglob("*")) if path.name.endswith(POOLS)), None)
        hint = f"; pools are named themselves, such as {_shown(pool)}" if pool else ""
        yield Rejection(_shown(root), f"no SKILL.md below this folder{hint}")


_ASTRAY = "a link out of the library's folder; name what it leads to in library.paths"


def _home(root: Path) -> Path:
    """The folder that links must stay in; downloads of the Hugging Face hub keep their files beside their snapshots."""
    real = root.resolve()
    hub = (
        folder.parent for folder in real.parents if folder.name == "snapshots" and (folder.parent / "blobs").is_dir()
    )
    return next(hub, real)


def _read_document(path: Path, skill_id: str) -> Skill | Rejection:
    source, skill_id = _shown(path), _shown(skill_id)
    try:
        if not path.is_file():
            return Rejection(source, "not a file")
        with path.open("rb") as file:
            document = parse_skill_file(file.read(MAX_BYTES + 1), fallback_name=_last_part(skill_id))
    except OSError as error:
        return Rejection(source, _reason(error))
    except SkillFileError as error:
        return Rejection(source, str(error))
    return Skill(skill_id, document.name, document.description, document.body, source, document.fields)


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


def _last_part(skill_id: str) -> str:
    return skill_id.rsplit("/", 1)[-1]


def _shown(path: str | Path) -> str:
    """A path as text, also where its bytes are none."""
    return os.fsencode(path).decode("utf-8", errors="replace")


def _read_pool(path: Path) -> Iterator[Skill | Rejection]:
    """One skill a line, as JSON objects."""
    source = _shown(path)
    number = 0
    try:
        with open_pool(path) as file:
            while line := file.readline(MAX_BYTES + 1):
                number += 1
                if len(line) > MAX_BYTES:
                    yield Rejection(f"{source}:{number}", f"larger than {MAX_BYTES:,} bytes")
                    while line and not line.endswith(b"\n"):
                        line = file.readline(MAX_BYTES)
                elif line.strip():
                    yield _read_line(line.removeprefix(BOM_UTF8), f"{source}:{number}")
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise LibraryError(
            f"{source} cannot be read after line {number}: {error}", "copy or download it again"
        ) from error


def open_pool(path: Path) -> BufferedIOBase:
    """A pool's bytes, unpacked as its name says."""
    if path.suffix == ".gz":
        return gzip.open(path)
    return lzma.open(path) if path.suffix == ".xz" else path.open("rb")


def _read_line(line: bytes, source: str) -> Skill | Rejection:
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        return Rejection(source, f"not JSON: {error}")
    if not isinstance(record, dict):
        return Rejection(source, "not a JSON object")
    values = [record.get(key) or "" for key in _POOL_KEYS]
    wrong = [key for key, value in zip(_POOL_KEYS, values, strict=True) if not isinstance(value, str)]
    if wrong:
        return Rejection(source, f"{wrong[0]} is not text")
    skill_id, name, description, body = values
    if not skill_id.strip():
        return Rejection(source, "no skill_id")
    try:
        document = make_skill_file(name, description, body, fallback_name=_last_part(skill_id))
    except SkillFileError as error:
        return Rejection(source, str(error))
    return Skill(skill_id, document.name, document.description, document.body, source)


_POOL_KEYS = ("skill_id", "name", "description", "body")
