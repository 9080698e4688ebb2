"""`skillarena library import`: several trees and pools as one library."""

from __future__ import annotations

import gzip
import lzma
import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, cast

import orjson
from rich.text import Text

from skillarena.orchestration.console import EXIT_OK, console_for_results, plain, plain_json
from skillarena.orchestration.library_command.survey import Survey, survey
from skillarena.orchestration.library_command.target import aside, check_free
from skillarena.orchestration.library_command.tree import folder_of, write_document
from skillarena.orchestration.progress_bar import ProgressBar
from skillarena.selectors.interface import Skill
from skillarena.selectors.library import POOLS, Rejection, SkillLibrary

_MOST_LISTED = 10


def merge(sources: Sequence[str], to: Path, *, near: float, drop_near: bool, as_json: bool) -> int:
    """Write one library out of all sources, and say what repeats and what was refused.

    Of equal documents the first (in order of ids) is taken. The target appears when it is whole and reads back as what
    was written.

    Args:
        sources: as for ``SkillLibrary.load``.
        to: a folder for a tree, or a ``.jsonl``, ``.jsonl.gz`` or ``.jsonl.xz`` file for a pool.
        near: least similarity of near-duplicates.
        drop_near: leave near-duplicates out, too.
        as_json: print JSON.

    Returns:
        The exit code.

    Raises:
        LibraryError: a source is missing, nothing can be used, or the target exists.
        ConfigError: ``near`` makes no sense.
    """
    to = to.expanduser().absolute()
    check_free(to)
    found = survey(SkillLibrary.load(sources), near)
    left_out = {repeat.index for repeat in (found.repeats if drop_near else found.exact)}
    kept = [skill for index, skill in enumerate(found.skills) if index not in left_out]
    with aside(to) as staging:
        is_pool = to.name.endswith(POOLS)
        lost = _write_pool(kept, staging) if is_pool else _write_tree(kept, staging)
    written = Written(to, len(kept) - len(lost), drop_near, [*found.rejected, *lost])
    bare = sum(bool(skill.fields) for skill in kept) if is_pool else 0
    (_json if as_json else _print)(found, written, bare)
    return EXIT_OK


@dataclass(frozen=True, slots=True)
class Written:
    """What became of a survey."""

    to: Path
    skills: int
    without_near: bool
    """Near-duplicates were left out."""
    rejected: list[Rejection]


def _write_pool(skills: Sequence[Skill], path: Path) -> list[Rejection]:
    """One JSON object a line, as ``SkillLibrary.load`` reads them; returns what does not read back as it was."""
    with _create(path) as file, ProgressBar("writing", len(skills)) as bar:
        for skill in skills:
            record = {"skill_id": skill.id, "name": skill.name, "description": skill.description, "body": skill.body}
            file.write(orjson.dumps(record) + b"\n")
            bar.advance()
    back = {skill.id: (skill.name, skill.description, skill.body) for skill in SkillLibrary.load([path]).skills}
    return [_lost(skill) for skill in skills if back.get(skill.id) != (skill.name, skill.description, skill.body)]


def _create(path: Path) -> IO[bytes]:
    if path.suffix == ".gz":
        return cast("IO[bytes]", gzip.open(path, "wb"))
    return cast("IO[bytes]", lzma.open(path, "wb")) if path.suffix == ".xz" else path.open("wb")


def _write_tree(skills: Sequence[Skill], root: Path) -> list[Rejection]:
    """Each skill in the folder that its id names; returns what would not read back as it was."""
    taken: set[str] = set()
    lost = []
    with ProgressBar("writing", len(skills)) as bar:
        for skill in skills:
            if not write_document(skill, root / folder_of(skill.id, taken)):
                lost.append(_lost(skill))
            bar.advance()
    return lost


def _lost(skill: Skill) -> Rejection:
    return Rejection(skill.source, "would read as something else in the new library")


def _json(found: Survey, written: Written, bare: int) -> None:
    plain_data = {
        "to": str(written.to),
        "skills": written.skills,
        "read_twice": [asdict(entry) for entry in found.read_twice],
        "exact_duplicates": [found.plain(repeat) for repeat in found.exact],
        "near_duplicates": [found.plain(repeat) for repeat in found.near],
        "rejected": [asdict(entry) for entry in written.rejected],
        "without_further_fields": bare,
    }
    sys.stdout.write(plain_json(orjson.dumps(plain_data, option=orjson.OPT_INDENT_2).decode()) + "\n")


def _print(found: Survey, written: Written, bare: int) -> None:
    rejected, to = written.rejected, written.to
    lines = [f"{written.skills:,} skills in {to}"]
    exact, near = len(found.exact) + len(found.read_twice), len(found.near)
    lines.append(f"{exact:,} exact duplicates, left out")
    lines.append(f"{near:,} near-duplicates, {'left out' if written.without_near else 'kept'}")
    lines += [
        f"  {found.skills[repeat.index].id} is nearly {found.skills[repeat.earlier].id} ({repeat.similarity:.2f})"
        for repeat in found.near[:_MOST_LISTED]
    ]
    lines += [_more(near)] if near > _MOST_LISTED else []
    lines.append(f"{len(rejected):,} documents rejected")
    lines += [f"  {entry.source}: {entry.reason}" for entry in rejected[:_MOST_LISTED]]
    lines += [_more(len(rejected))] if len(rejected) > _MOST_LISTED else []
    if bare:
        lines.append(f"{bare:,} skills have more in their front matter than a pool holds; a folder keeps it")
    lines.append(f"use it with: library=paths {shlex.quote(f'library.paths=[{to}]')}")
    out = console_for_results()
    for line in lines:
        out.print(Text(plain(line)), soft_wrap=True)


def _more(count: int) -> str:
    return f"  and {count - _MOST_LISTED:,} more; --json lists all"
