"""`skillarena library lint`: every problem of every document, with what to do about it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import orjson
from rich.text import Text

from skillarena.orchestration.console import EXIT_INCOMPLETE, EXIT_OK, console_for_results, plain, plain_json
from skillarena.orchestration.library_command.lint_document import Problem, of_bytes, of_skill, of_text
from skillarena.orchestration.library_command.survey import Survey, survey
from skillarena.orchestration.progress_bar import ProgressBar
from skillarena.selectors.interface import Skill
from skillarena.selectors.library import SkillLibrary, open_pool, read_documents

Problems = dict[str, list[Problem]]
"""By path, or by ``file:line`` for a pool."""


def lint(paths: Sequence[str], *, near: float, as_json: bool) -> int:
    """Print the problems of skill documents.

    Args:
        paths: as for ``SkillLibrary.load``.
        near: least similarity of near-duplicates.
        as_json: print JSON.

    Returns:
        The exit code: 1 when a document would be rejected.

    Raises:
        LibraryError: a path is missing or of another kind.
        ConfigError: ``near`` makes no sense.
    """
    skills, rejections = read_documents(paths, damaged="list")
    found = survey(SkillLibrary(tuple(skills), tuple(rejections)), near)
    problems = find_problems(found)
    if as_json:
        plain_data = {source: [asdict(problem) for problem in several] for source, several in problems.items()}
        sys.stdout.write(plain_json(orjson.dumps(plain_data, option=orjson.OPT_INDENT_2).decode()) + "\n")
    else:
        _print(problems, len(found.skills) + len(found.library.rejections))
    return EXIT_INCOMPLETE if found.rejected else EXIT_OK


def find_problems(found: Survey) -> Problems:
    """All problems, documents in order of their paths."""
    problems: Problems = {}
    for entry in found.library.rejections:
        problems.setdefault(entry.source, []).append(
            Problem("repeat", entry.reason, "remove one of them")
            if entry.repeat
            else Problem("rejected", entry.reason, "mend or remove it", rejected=True)
        )
    for skill, problem in _of_documents(found.skills):
        problems.setdefault(skill.source, []).append(problem)
    for skill, problem in _between_documents(found):
        problems.setdefault(skill.source, []).append(problem)
    return dict(sorted(problems.items(), key=lambda item: _place(item[0])))


def _of_documents(skills: Sequence[Skill]) -> Iterator[tuple[Skill, Problem]]:
    in_pools: dict[str, dict[int, Skill]] = {}
    with ProgressBar("reading documents", len(skills)) as bar:
        for skill in skills:
            for problem in of_skill(skill):
                yield skill, problem
            path, line = _place(skill.source)
            if line:
                in_pools.setdefault(path, {})[line] = skill
                continue
            bar.advance()
            for problem in of_bytes(Path(path).read_bytes()):
                yield skill, problem
        for pool, by_line in in_pools.items():
            for skill, text in _lines(Path(pool), by_line):
                bar.advance()
                for problem in of_text(text):
                    yield skill, problem


def _lines(pool: Path, by_line: dict[int, Skill]) -> Iterator[tuple[Skill, str]]:
    """Each skill of a pool with the texts of its record as they stand there."""
    with open_pool(pool) as file:
        for number, line in enumerate(file, start=1):
            if number in by_line:
                record = orjson.loads(line.removeprefix(b"\xef\xbb\xbf"))
                yield by_line[number], "\n".join(str(record.get(key) or "") for key in ("name", "description", "body"))


def _between_documents(found: Survey) -> Iterator[tuple[Skill, Problem]]:
    for several in found.shared_names.values():
        for skill in several:
            other = several[0] if skill is not several[0] else several[1]
            message = f"{len(several)} skills are named {skill.name!r}, one of them in {other.source}"
            yield skill, Problem("shared-name", message, "give each a name of its own, or remove all but one")
    for repeat in found.repeats:
        other, how = found.skills[repeat.earlier], "is" if repeat.exact else f"is nearly ({repeat.similarity:.2f})"
        rule = "duplicate" if repeat.exact else "near-duplicate"
        yield found.skills[repeat.index], Problem(rule, f"{how} the document {other.source}", "remove one of them")


def _place(source: str) -> tuple[str, int]:
    """Path and line; line 0 for a document with a file of its own."""
    path, colon, line = source.rpartition(":")
    return (path, int(line)) if colon and line.isdecimal() and not Path(source).exists() else (source, 0)


def _print(problems: Problems, documents: int) -> None:
    out = console_for_results()
    for source, several in problems.items():
        out.print(Text(plain(source)), soft_wrap=True)
        for problem in several:
            line = f"  {'rejected: ' if problem.rejected else ''}{problem.message} [{problem.rule}]; {problem.fix}"
            out.print(Text(plain(line), style="red" if problem.rejected else ""), soft_wrap=True)
    rules = Counter(problem.rule for several in problems.values() for problem in several)
    counts = ", ".join(f"{count:,} {rule}" for rule, count in rules.most_common())
    out.print(
        f"{documents:,} documents, {len(problems):,} with problems{f': {counts}' if counts else ''}", soft_wrap=True
    )
