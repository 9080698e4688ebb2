"""A skill as a node: the fields that its front matter and its sections give by rule (released code, parser)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import yaml

from skillarena.selectors.interface import Skill
from skillarena.selectors.skill_file import ShallowLoader

_SNIPPET_CHARS = 900
_MOST_ITEMS = 1000
"""Of one list of a document; every item is compared with those of all other skills."""
_HEADING = re.compile(r"\s*#{1,6}\s*(.*?)\s*")
_ENDS_SECTION = re.compile(r"\s*#{1,6}\s+")
_BULLET = re.compile(r"\s*[-*+]\s+(.*)")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_SEPARATOR = re.compile(r"[\n,;]+")
_INPUTS = ("inputs", "input", "requirements", "arguments")
_OUTPUTS = ("outputs", "output", "returns", "results")
_TAGS = ("domain", "domains", "tags", "category")
_TOOLING = ("tools", "tooling", "libraries", "dependencies")
_EXAMPLES = ("examples", "example tasks", "use when", "use cases")
_TITLES = frozenset((*_INPUTS, *_OUTPUTS, *_TAGS, *_TOOLING, *_EXAMPLES))
"""Headings of the sections that are read."""
_BLANKS = re.compile(r"[ \t]{2,}|\t")
_EMPTY_LINES = re.compile(r"\n{3,}")


@dataclass(frozen=True, slots=True)
class Node:
    """What the graph knows of a skill.

    The reference also lists the scripts beside a ``SKILL.md``. A skill here is one document, so there are none, and
    every term of the method that reads scripts is left out.
    """

    name: str
    description: str
    capability: str
    """One line."""
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    """Domains and categories."""
    tooling: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    """Tasks that the skill is for."""
    compatibility: tuple[str, ...] = ()
    allowed_tools: tuple[str, ...] = ()
    snippet: str = ""
    """The document's beginning, at most 900 characters."""

    @property
    def texts(self) -> tuple[str, ...]:
        """All its text, field by field."""
        lists = (self.inputs, self.outputs, self.tags, self.tooling, self.examples)
        return (
            self.name,
            self.description,
            self.capability,
            *(item for items in lists for item in items),
            self.snippet,
        )

    @property
    def embedded(self) -> str:
        """The text whose embedding stands for the node; empty fields are left out."""
        fields = (
            ("Skill", self.name),
            ("DESCRIPTION", self.description),
            ("CAPABILITY", self.capability),
            ("INPUTS", "\n".join(self.inputs)),
            ("OUTPUTS", "\n".join(self.outputs)),
            ("DOMAIN_TAGS", "\n".join(self.tags)),
            ("TOOLING", "\n".join(self.tooling)),
            ("EXAMPLE_TASKS", "\n".join(self.examples)),
            ("COMPATIBILITY", "\n".join(self.compatibility)),
            ("ALLOWED_TOOLS", "\n".join(self.allowed_tools)),
            ("SNIPPET", self.snippet),
        )
        return "\n".join(f"[{label}] {text}" for label, text in fields if text)


def read_node(skill: Skill) -> Node:
    """The fields of a skill, most of them empty for a plain document.

    Unlike the reference it reads every skill: one without description is a node all the same.
    """
    front = _Front(dict(skill.fields))
    sections = _sections(skill.body)
    compatibility = front.first("compatibility")
    allowed = front.first("allowed-tools", "allowed_tools")
    return Node(
        name=skill.name,
        description=skill.description,
        capability=front.line("one_line_capability", "capability", "summary") or _first_sentence(skill.description),
        inputs=front.first("inputs", "input") or _section(sections, _INPUTS),
        outputs=front.first("outputs", "output") or _section(sections, _OUTPUTS),
        tags=_distinct(
            front.every("domain", "domains", "tags", "category", "categories"),
            front.nested("domain", "domains", "tags"),
            _section(sections, _TAGS),
        ),
        tooling=_distinct(
            front.every("tooling", "libraries", "dependencies"),
            front.nested("tooling", "libraries"),
            allowed,
            _section(sections, _TOOLING),
        ),
        examples=_distinct(
            front.every("examples", "example_tasks"),
            front.nested("examples", "example_tasks"),
            _section(sections, _EXAMPLES),
        ),
        compatibility=compatibility,
        allowed_tools=allowed,
        snippet=_snippet(skill, compatibility, allowed),
    )


class _Front:
    """Front matter: top-level entries as YAML source, and the mapping under ``metadata``."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        self._entries = {key: _structure(source) for key, source in fields.items()}
        metadata = self._entries.get("metadata")
        self._metadata = metadata if isinstance(metadata, dict) else {}

    def first(self, *keys: str) -> tuple[str, ...]:
        """The items of the first entry that has any."""
        return next((items for key in keys if (items := _first_items(_items(self._entries.get(key))))), ())

    def every(self, *keys: str) -> tuple[str, ...]:
        return _first_items(item for key in keys for item in _items(self._entries.get(key)))

    def nested(self, *keys: str) -> tuple[str, ...]:
        return _first_items(item for key in keys for item in _items(self._metadata.get(key)))

    def line(self, *keys: str) -> str:
        """The first of these entries, or the summary under ``metadata``."""
        entries = [*(self._entries.get(key) for key in keys), self._metadata.get("summary")]
        return next((_compact(entry) for entry in entries if isinstance(entry, str) and entry.strip()), "")


def _structure(source: str) -> Any:
    """A list or mapping of texts where the YAML source is one without aliases (which can grow beyond measure)."""
    try:
        value = yaml.load(source, Loader=_WithoutAliases)  # noqa: S506 - makes nothing but texts, lists and mappings
    except (yaml.YAMLError, RecursionError):
        return source
    return value if isinstance(value, list | dict) else source


class _WithoutAliases(ShallowLoader):
    """Refuses an alias where it stands. Going through all events first would take minutes for thousands of brackets."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("an alias")
        return super().compose_node(parent, index)


def _items(value: Any) -> Iterator[str]:
    """The items of a text (by line, comma and semicolon), list (each item likewise) or mapping (``key: value``)."""
    if isinstance(value, str):
        yield from (part.strip() for part in _SEPARATOR.split(value) if part.strip())
    elif isinstance(value, dict):
        yield from (f"{key}: {str(item).strip()}" for key, item in value.items())
    elif isinstance(value, list):
        for item in value:
            yield from _items(item)


def _sections(body: str) -> dict[str, list[str]]:
    """The lines below each heading up to the next one, by heading in lower case; the first of equal headings."""
    sections: dict[str, list[str]] = {}
    lines: list[str] = []  # what comes before the first heading belongs to none
    for line in body.split("\n"):
        heading = _HEADING.fullmatch(line) if "#" in line else None
        if heading and (heading[1].lower() in _TITLES or _ENDS_SECTION.match(line)):
            lines = []
            sections.setdefault(heading[1].lower(), lines)
        else:
            lines.append(line)
    return sections


def _section(sections: Mapping[str, list[str]], titles: Collection[str]) -> tuple[str, ...]:
    """The bullets of the document's first section with one of these titles, or its lines where it has no bullet."""
    lines = next((lines for title, lines in sections.items() if title in titles), [])
    bullets = [bullet[1].strip() for line in lines if (bullet := _BULLET.fullmatch(line))]
    return _first_items(item for item in (bullets or [line.strip() for line in lines]) if item)


def _first_items(items: Iterable[str]) -> tuple[str, ...]:
    return tuple(islice(items, _MOST_ITEMS))


def _distinct(*lists: Iterable[str]) -> tuple[str, ...]:
    """Items in order, without repeats that differ in case only."""
    firsts: dict[str, str] = {}
    for items in lists:
        for item in map(_compact, items):
            firsts.setdefault(item.lower(), item)
    return tuple(item for item in firsts.values() if item)


def _snippet(skill: Skill, compatibility: tuple[str, ...], allowed_tools: tuple[str, ...]) -> str:
    parts = [f"# {skill.name}", skill.description.strip()]
    if compatibility:
        parts.append(f"Compatibility: {', '.join(compatibility)}")
    if allowed_tools:
        parts.append(f"Allowed tools: {', '.join(allowed_tools)}")
    parts.append(skill.body.strip())
    return clip(_compact("\n\n".join(part for part in parts if part)), _SNIPPET_CHARS)


def clip(text: str, chars: int) -> str:
    """At most that many characters, the last three being dots where something was cut."""
    if len(text) <= chars:
        return text
    return f"{text[: max(chars - 3, 0)].rstrip()}..."[:chars]


def _compact(text: str) -> str:
    return _BLANKS.sub(" ", _EMPTY_LINES.sub("\n\n", text)).strip()


def _first_sentence(text: str) -> str:
    return _SENTENCE_END.split(_compact(text), maxsplit=1)[0]
