"""What the graph is searched for: an instruction or a skill, in the same form (released code, query schema)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from skillarena.selectors.graph_of_skills.fields import Node
from skillarena.selectors.graph_of_skills.tokens import signature

_NAME_WORDS = 8
_NAME_CHARS = 80
_FILE = re.compile(r"(?<![A-Za-z0-9_./-])[A-Za-z0-9_./-]+\.(?:py|md|json|csv|stl|dot|txt|yaml|yml|bib|pptx|xlsx|docx)")
"""Tried at the start of a run of such characters only: starts within it find no more, but take quadratic time."""


@dataclass(frozen=True, slots=True)
class Query:
    """A goal with what can be told from its words. An instruction has no domain, operations or constraints."""

    goal: str
    task_name: str
    domain: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    artifacts: tuple[str, ...] = ()
    """File names."""
    constraints: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()

    @classmethod
    def of_instruction(cls, instruction: str) -> Query:
        """By rule, as the reference does unless a model rewrites queries, which it has switched off."""
        goal = _one_line(instruction)
        words = [word.lower() for word in re.split(r"[^a-zA-Z0-9]+", goal) if word]
        artifacts = _files(goal)
        return cls(
            goal,
            "-".join(words[:_NAME_WORDS])[:_NAME_CHARS],
            artifacts=artifacts,
            keywords=tuple(sorted(signature((goal, *artifacts)))),
        )

    @classmethod
    def of_node(cls, node: Node) -> Query:
        """What other skills are compared with, to find those that may be linked with this one."""
        texts = node.texts
        return cls(
            node.capability or node.description or node.name,
            re.sub(r"[^a-z0-9]+", "-", node.name.lower()).strip("-"),
            domain=_distinct(node.tags),
            operations=_distinct((*node.tooling, *node.examples)),
            artifacts=_files("\n".join(texts)),
            constraints=_distinct((*node.compatibility, *node.allowed_tools)),
            keywords=tuple(sorted(signature(texts))),
        )

    @property
    def values(self) -> tuple[str, ...]:
        """All that is not empty."""
        lists = (self.domain, self.operations, self.artifacts, self.constraints, self.keywords)
        return tuple(
            value for value in (self.goal, self.task_name, *(item for items in lists for item in items)) if value
        )

    @property
    def tokens(self) -> set[str]:
        """Q of every overlap: the slug of the whole goal counts in all denominators."""
        return signature(self.values)

    @property
    def embedded(self) -> str:
        """The text that is embedded, one value a line, the name last."""
        lists = (self.domain, self.operations, self.artifacts, self.constraints, self.keywords)
        lines = (self.goal, *(item for items in lists for item in items), self.task_name)
        return "\n".join(line.strip() for line in lines if line.strip())


def _files(text: str) -> tuple[str, ...]:
    return _distinct(_FILE.findall(text))


def _distinct(values: Iterable[str]) -> tuple[str, ...]:
    """On one line each, without repeats that differ in case only."""
    firsts: dict[str, str] = {}
    for value in map(_one_line, values):
        firsts.setdefault(value.lower(), value)
    return tuple(value for value in firsts.values() if value)


def _one_line(text: str) -> str:
    return " ".join(text.split())
