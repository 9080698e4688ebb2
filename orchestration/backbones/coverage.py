"""Which commands a skill teaches."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from skillarena.orchestration.dialects import dialect_of

_FENCE = re.compile(r"[ \t]{0,8}(?:```|~~~)")
_INLINE_CODE = re.compile(r"`([^`\n]{1,300})`")
_MARKS = re.compile(r"(?:[-*+>$#|][ \t]{0,8}|\d{1,3}[.)][ \t]{1,8}){0,3}(?:action[ \t]{0,3}\d{0,3}:[ \t]{0,8})?", re.I)
_CODE_LINE = re.compile(r"\t| {4}|[ ]{0,3}(?:\W{0,8}action\b|>)", re.IGNORECASE)


def covers(skill_text: str, action: str, benchmark: str) -> bool:
    """Whether a skill teaches the command that ``action`` is an instance of.

    It does when its text shows a command with the same verb as code: in backticks, on a line of a fenced or indented
    block, or on a line that begins with ``Action:`` or ``>``. The command must be complete, names and placeholders
    included, so mentioning ``heat`` teaches nothing while ``heat {object} with {appliance}`` does; prose never counts,
    because "Use this skill when" would teach ``use``.

    Args:
        skill_text: full text of the skill.
        action: a command of the benchmark.
        benchmark: name of the benchmark, for the forms of its commands.
    """
    verb = dialect_of(benchmark).verb(action)
    return verb is not None and verb in taught_verbs(skill_text, benchmark)


@lru_cache(maxsize=4096)
def taught_verbs(skill_text: str, benchmark: str) -> frozenset[str]:
    """The verbs of all commands that a skill's text shows as code (see ``covers``)."""
    dialect = dialect_of(benchmark)
    verbs = (dialect.verb(snippet) for snippet in _snippets(skill_text))
    return frozenset(verb for verb in verbs if verb is not None)


def _snippets(text: str) -> Iterator[str]:
    """Everything in ``text`` that may be a command, without list marks."""
    fenced = False
    for line in text.splitlines():
        if _FENCE.match(line):
            fenced = not fenced
            continue
        if fenced or _CODE_LINE.match(line):
            yield _bare(line)
        yield from map(_bare, _INLINE_CODE.findall(line))


def _bare(snippet: str) -> str:
    snippet = snippet.strip()
    mark = _MARKS.match(snippet)
    return snippet[mark.end() if mark else 0 :].strip().rstrip(".,;")
