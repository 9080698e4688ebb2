"""Grounded ALFWorld games: made once on a machine, then read from disk or memory."""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
import zlib
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from skillarena.conf.errors import EnvError
from skillarena.envs.alfworld_translator import translate

FORMAT = 1
"""Raised by every change of ``Translation``: files on disk belong to one format."""

KEPT_IN_MEMORY = 16
"""Translations a process keeps; one takes 0.3 to 3 MB."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Translation:
    """A PDDL problem in the form Fast Downward plays, with what it takes to name and describe its parts."""

    sas: str
    """The grounded task in Fast Downward's SAS format."""
    objects: dict[str, str]
    """Type of each object."""
    supertypes: dict[str, list[str]]
    """Each type with the types it counts as, itself included."""
    parameters: dict[str, list[list[str]]]
    """Name and type of the parameters of each action, in order."""
    changing: list[str]
    """Predicates that some action changes."""
    initial: list[Annotated[list[str], Field(min_length=1)]]
    """The facts of the problem: predicate and objects."""


_SCHEMA = TypeAdapter(Translation)


@lru_cache(maxsize=KEPT_IN_MEMORY)
def translation_of(domain: str, problem: str, cache_dir: Path, deadline_s: float) -> Translation:
    """The translation of a game, from memory, from ``cache_dir``, or made now in a child process.

    Args:
        domain: PDDL domain.
        problem: PDDL problem.
        cache_dir: folder of stored translations; made when missing.
        deadline_s: seconds that making one may take.

    Raises:
        DataError: the translator refuses the PDDL.
        EnvError: the translator is missing, late or killed, or the folder cannot be used.
    """
    identity = "\0".join([domain, problem, _translator_version(), str(FORMAT)])
    path = cache_dir / f"{hashlib.sha256(identity.encode()).hexdigest()}.json.z"
    try:
        stored = _read(path)
        if stored is not None:
            return stored
        text = translate(domain, problem, deadline_s)
        _write(path, text)
    except OSError as error:
        raise EnvError(
            f"the cache of ALFWorld games {cache_dir} cannot be used: {error}",
            "free some space, or name another folder with cache_dir or SKILLARENA_CACHE",
        ) from error
    return _SCHEMA.validate_json(text)


def _translator_version() -> str:
    try:
        return version("fast_downward_textworld")
    except PackageNotFoundError as error:
        raise EnvError("ALFWorld is not installed", "run `pip install 'skillarena[alfworld]'`") from error


def _read(path: Path) -> Translation | None:
    try:
        return _SCHEMA.validate_json(zlib.decompress(path.read_bytes()))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValidationError, zlib.error) as error:
        logger.warning("%s is damaged and will be made again (%s)", path, error)
        return None


def _write(path: Path, text: bytes) -> None:
    """Put the whole file in place at once, whoever else writes it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(zlib.compress(text, level=1))
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
