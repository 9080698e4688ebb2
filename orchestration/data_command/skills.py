"""`skillarena data skills`: a collection of skills from a folder, an archive or the hub, checked as a library."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path, PurePosixPath

from rich.text import Text

from skillarena.conf.errors import ConfigError, DataError, LibraryError, nearest
from skillarena.orchestration.console import EXIT_OK, console_for_results, plain
from skillarena.orchestration.data_command.archives import check_space, is_archive, members, place
from skillarena.orchestration.data_command.hub import fetch_collection
from skillarena.orchestration.library_command.target import aside, check_free
from skillarena.orchestration.progress_bar import ProgressBar
from skillarena.selectors.library import POOLS, Rejection, SkillLibrary

_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_REPO_TYPES = ("dataset", "model", "space")
_LICENCES = ("license", "licence", "notice", "copying")
_ON_HUB = ("*SKILL.md", "*skill.md", *(f"*{ending}" for ending in POOLS), "*LICEN[CS]E*", "*NOTICE*", "*COPYING*")
_MOST_LISTED = 10


def get_skills(source: str, to: Path, *, repo_type: str, revision: str | None, as_json: bool) -> int:
    """Copy the documents of a collection into a folder of their own and read them.

    Only ``SKILL.md`` documents, pools and licences are copied. The folder appears once all of it is there and can be
    read.

    Args:
        source: a folder, an archive, a pool, or an id on the hub.
        to: the library's folder; must be new or empty.
        repo_type: what the id on the hub is of.
        revision: on the hub.
        as_json: print JSON.

    Returns:
        The exit code.

    Raises:
        DataError: the source cannot be had.
        LibraryError: not one document in it can be used, or the folder is taken.
    """
    to = to.expanduser().absolute()
    check_free(to)
    found = _local(source, repo_type, revision)
    with aside(to) as staging:
        staging.mkdir()
        if found.is_dir() or is_archive(found):
            with members(found, _wanted) as files:
                check_space(files, staging)
                with ProgressBar(f"copying from {found.name}", len(files)) as bar:
                    for file in files:
                        place(file, staging / file.path)
                        bar.advance()
        else:
            shutil.copyfile(found, staging / found.name)
        paths = _library_paths(staging)
        if not paths:
            raise LibraryError(
                f"{source} holds no SKILL.md and no pool ({', '.join(POOLS)})", "give a collection of skill documents"
            )
        try:
            library = SkillLibrary.load(paths)
        except LibraryError as error:  # of a copy that nobody has seen yet
            raise LibraryError(error.message.replace(str(staging), source), error.fix) from error
    moved = [str(to / path.relative_to(staging)) for path in paths]
    rejections = [Rejection(r.source.replace(str(staging), str(to)), r.reason, r.repeat) for r in library.rejections]
    _tell(len(library), rejections, moved, as_json=as_json)
    return EXIT_OK


def _local(source: str, repo_type: str, revision: str | None) -> Path:
    path = Path(source).expanduser().absolute()
    if path.is_dir() or (path.is_file() and (is_archive(path) or path.name.endswith(POOLS))):
        return path
    if path.exists():
        raise DataError(f"{source} is no skill collection", f"give a folder, an archive or a {', '.join(POOLS)} pool")
    if not _HUB_ID.fullmatch(source):
        raise DataError(f"there is no {source}", "check the path, or give an id on the hub as OWNER/NAME")
    if repo_type not in _REPO_TYPES:
        raise ConfigError(
            f"--repo-type is {repo_type!r}{nearest(repo_type, _REPO_TYPES)}", f"use one of: {', '.join(_REPO_TYPES)}"
        )
    return fetch_collection(source, repo_type, revision, _ON_HUB)


def _wanted(path: PurePosixPath) -> bool:
    name = path.name.lower()
    return name == "skill.md" or name.endswith(POOLS) or name.startswith(_LICENCES)


def _library_paths(folder: Path) -> list[Path]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    pools = [path for path in files if path.name.endswith(POOLS)]
    return [*([folder] if any(path.name.lower() == "skill.md" for path in files) else []), *pools]


def _tell(skills: int, rejections: list[Rejection], paths: list[str], *, as_json: bool) -> None:
    if as_json:
        plain_data = {"skills": skills, "paths": paths, "rejections": [asdict(entry) for entry in rejections]}
        sys.stdout.write(json.dumps(plain_data, indent=2) + "\n")
        return
    out = console_for_results()
    lines = [f"{skills:,} skills"]
    if rejections:
        lines.append(f"{len(rejections):,} documents are left out:")
        lines += [f"  {entry.source}: {entry.reason}" for entry in rejections[:_MOST_LISTED]]
        if len(rejections) > _MOST_LISTED:
            lines.append(f"  and {len(rejections) - _MOST_LISTED:,} more; `skillarena library lint` names all")
    value = f"library.paths=[{','.join(paths)}]"
    lines.append(f"use it with: library=paths {shlex.quote(value)}")
    with suppress(BrokenPipeError):
        for line in lines:
            out.print(Text(plain(line)), soft_wrap=True)
