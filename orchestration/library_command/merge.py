"""`skillarena library import`: several trees and pools as one library."""

from __future__ import annotations

import gzip
import lzma
import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import IO, cast

import orjson
from rich.text import Text

from skillarena.conf.errors import LibraryError
from skillarena.orchestration.console import EXIT_OK, console_for_results, plain
from skillarena.orchestration.library_command.survey import Survey, survey
from skillarena.orchestration.library_command.target import aside, check_free
from skillarena.orchestration.library_command.tree import folder_of, write_document
from skillarena.orchestration.progress_bar import ProgressBar
from skillarena.selectors.interface import Skill
from skillarena.selectors.library import POOLS, SkillLibrary

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
        if to.name.endswith(POOLS):
            _write_pool(kept, staging)
            _check(kept, staging)
        else:
            _write_tree(kept, staging)
    bare = sum(bool(skill.fields) for skill in kept) if to.name.endswith(POOLS) else 0
    report = _json if as_json else _print
    report(found, len(kept), bare, to)
    return EXIT_OK


def _write_pool(skills: Sequence[Skill], path: Path) -> None:
    """One JSON object a line, as ``SkillLibrary.load`` reads them."""
    with _create(path) as file, ProgressBar("writing", len(skills)) as bar:
        for skill in skills:
            record = {"skill_id": skill.id, "name": skill.name, "description": skill.description, "body": skill.body}
            file.write(orjson.dumps(record) + b"\n")
            bar.advance()


def _create(path: Path) -> IO[bytes]:
    if path.suffix == ".gz":
        return cast("IO[bytes]", gzip.open(path, "wb"))
    return cast("IO[bytes]", lzma.open(path, "wb")) if path.suffix == ".xz" else path.open("wb")


def _check(skills: Sequence[Skill], pool: Path) -> None:
    written = {skill.id: (skill.name, skill.description, skill.body) for skill in skills}
    back = {skill.id: (skill.name, skill.description, skill.body) for skill in SkillLibrary.load([pool]).skills}
    for skill_id, content in written.items():
        if back.get(skill_id) != content:
            raise LibraryError(
                f"the skill {skill_id!r} would not read back from a pool as it is", "write a folder, or leave it out"
            )


def _write_tree(skills: Sequence[Skill], root: Path) -> None:
    """Each skill in the folder that its id names."""
    taken: set[str] = set()
    with ProgressBar("writing", len(skills)) as bar:
        for skill in skills:
            write_document(skill, root / folder_of(skill.id, taken))
            bar.advance()


def _json(found: Survey, kept: int, bare: int, to: Path) -> None:
    plain_data = {
        "to": str(to),
        "skills": kept,
        "read_twice": [asdict(entry) for entry in found.read_twice],
        "exact_duplicates": [found.plain(repeat) for repeat in found.exact],
        "near_duplicates": [found.plain(repeat) for repeat in found.near],
        "rejected": [asdict(entry) for entry in found.rejected],
        "without_further_fields": bare,
    }
    sys.stdout.write(orjson.dumps(plain_data, option=orjson.OPT_INDENT_2).decode() + "\n")


def _print(found: Survey, kept: int, bare: int, to: Path) -> None:
    lines = [f"{kept:,} skills in {to}"]
    dropped = len(found.skills) - kept
    exact, near = len(found.exact) + len(found.read_twice), len(found.near)
    lines.append(f"{exact:,} exact duplicates, left out")
    lines.append(f"{near:,} near-duplicates, {'left out' if dropped > len(found.exact) else 'kept'}")
    lines += [
        f"  {found.skills[repeat.index].id} is nearly {found.skills[repeat.earlier].id} ({repeat.similarity:.2f})"
        for repeat in found.near[:_MOST_LISTED]
    ]
    lines += [_more(near)] if near > _MOST_LISTED else []
    lines.append(f"{len(found.rejected):,} documents rejected")
    lines += [f"  {entry.source}: {entry.reason}" for entry in found.rejected[:_MOST_LISTED]]
    lines += [_more(len(found.rejected))] if len(found.rejected) > _MOST_LISTED else []
    if bare:
        lines.append(f"{bare:,} skills have more in their front matter than a pool holds; a folder keeps it")
    lines.append(f"use it with: library=paths {shlex.quote(f'library.paths=[{to}]')}")
    out = console_for_results()
    for line in lines:
        out.print(Text(plain(line)), soft_wrap=True)


def _more(count: int) -> str:
    return f"  and {count - _MOST_LISTED:,} more; --json lists all"
