"""Parses kept on disk, and what they cost."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import TypeVar

from skillarena.envs.interface import Task
from skillarena.selectors.cache import DiskCache, digest
from skillarena.selectors.interface import ParsedSkill, ParsedTask, Parser, Skill
from skillarena.selectors.measure import offline

_FORMAT = "parse/1"
"""Part of every key; raise the number when the fields of a parse change."""

Parsed = TypeVar("Parsed", ParsedTask, ParsedSkill)


@dataclass(slots=True)
class ParseCost:
    """LLM use of parsing."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    llm_calls: int = 0

    def add(self, parsed: ParsedTask | ParsedSkill) -> None:
        """Add what one parse took."""
        self.prompt_tokens += parsed.prompt_tokens
        self.completion_tokens += parsed.completion_tokens
        self.llm_calls += parsed.llm_calls


class CachedParser:
    """A parser whose results outlive the process, keyed by its identity and the text.

    Fallbacks are kept like any other result, mark included, as asking again would give them again; a model that cannot
    be reached raises and leaves nothing behind.

    Args:
        parser: what parses a text that is not in the cache.
        cache: where results are kept.
    """

    def __init__(self, parser: Parser, cache: DiskCache) -> None:
        self.identity = parser.identity
        self.online = ParseCost()
        """Of all tasks parsed so far. A task found in the cache counts with what its parse took, so that a method's
        cost does not depend on which method came first."""
        self.offline = ParseCost()
        """Of the skills that this object had to parse, those found in the cache not included."""
        self._parser = parser
        self._cache = cache

    def check(self) -> None:
        """Preflight of the model behind the parser, if it has one. Raises ``BackboneError``."""
        check = getattr(self._parser, "check", None)
        if check is not None:
            check()

    def parse_task(self, task: Task) -> ParsedTask:
        """Raises ``BackboneError`` when the parser's model cannot be reached."""
        key = digest(_FORMAT, self.identity, "task", task.benchmark, task.goal)
        parsed, _ = self._kept(key, ParsedTask, lambda: self._parser.parse_task(task))
        self.online.add(parsed)
        return parsed

    def parse_skill(self, skill: Skill) -> ParsedSkill:
        """Raises ``BackboneError`` when the parser's model cannot be reached."""
        with offline():
            key = self._skill_key(skill)
            parsed, found = self._kept(key, ParsedSkill, lambda: self._parser.parse_skill(skill))
        if not found:
            self.offline.add(parsed)
        return parsed

    def unparsed(self, skills: Iterable[Skill]) -> list[Skill]:
        """Those whose parses are not kept yet, of equal texts one."""
        by_key = {self._skill_key(skill): skill for skill in skills}
        kept = self._cache.get_many(by_key)
        return [skill for key, skill in by_key.items() if key not in kept]

    def _skill_key(self, skill: Skill) -> bytes:
        return digest(_FORMAT, self.identity, "skill", skill.text)

    def _kept(self, key: bytes, kind: type[Parsed], parse: Callable[[], Parsed]) -> tuple[Parsed, bool]:
        stored = self._cache.get_many([key]).get(key)
        if stored is not None and (known := stored_parse(stored, kind)) is not None:
            return known, True
        parsed = parse()
        self._cache.put_many({key: json.dumps(asdict(parsed)).encode()})
        return parsed, False


def stored_parse(stored: bytes, kind: type[Parsed]) -> Parsed | None:
    """A parse that was kept as JSON; None for anything else, which then is parsed anew.

    Texts may hold half characters, which stricter readers of JSON refuse.
    """
    try:
        fields = json.loads(stored)
        lists = {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
        return kind(**{**fields, **lists})
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None
