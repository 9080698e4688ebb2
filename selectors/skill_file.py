"""One skill document, however badly written: its name, description and body, or the reason why there is none.

Skill documents are untrusted text. Of YAML only the syntax is read and no object is ever built; size and nesting are
bounded. The worst a document can do is to be refused.
"""

from __future__ import annotations

import codecs
import re
import textwrap
from dataclasses import dataclass, replace
from typing import Any

import yaml

MAX_BYTES = 5_000_000
"""Largest document that is read; real ones rarely pass 100 kB."""
MAX_NAME = 1000
"""Characters; the format's authors allow 64."""
_MOST_GROWTH = 3
_DEEPEST = 50
MAX_YAML_CHARS = 16_384
"""More front matter than this is read entry by entry."""

_NAME_KEYS = ("name", "slug", "title", "display_name", "displayname")
_DESCRIPTION_KEYS = ("description", "summary", "about")

UNWANTED = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
)
"""Control characters that no text needs and YAML forbids, lone surrogates, and the marks that reorder what is shown."""
_KEY = re.compile(r"([A-Za-z_][\w-]*)[ \t]*:(?=\s|$)")
_BLOCK_MARKER = re.compile(r"[|>][-+0-9]*(\s|$)")
_HEADING = re.compile(r"#{1,6}\s+\S")
_TITLE = re.compile(r" {0,3}\\?#\s+(\S.*)")
_FENCE = re.compile(r"\s*(```|~~~)")
_MARKDOWN_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")


class SkillFileError(ValueError):
    """A document holds no skill; the text says why in one clause."""


@dataclass(frozen=True, slots=True)
class SkillFile:
    """What a document says about its skill."""

    name: str
    """Never empty, one line."""
    description: str
    """One line; may be empty."""
    body: str
    """Everything after the front matter; may be empty."""
    fields: tuple[tuple[str, str], ...] = ()
    """The other entries of the front matter, keys in lower case, lists and mappings as YAML."""


def parse_skill_file(data: bytes, *, fallback_name: str) -> SkillFile:
    """Read a ``SKILL.md`` document.

    Front matter is read as YAML; where that fails, entry by entry, so that one bad line costs no other. Values are
    taken as written: ``yes`` and ``933133`` are names.

    Args:
        data: the file's bytes, UTF-8 or UTF-16; bytes that are not UTF-8 are read as Windows-1252.
        fallback_name: name of a document that gives none and has no title (a folder or file name).

    Raises ``SkillFileError`` for a document that is too large, has too long a name, or holds neither name, description
    nor body.
    """
    if len(data) > MAX_BYTES:
        raise SkillFileError(f"larger than {MAX_BYTES:,} bytes")
    fields, body = _split(_clean(_decode(data)))
    name = _MARKDOWN_ESCAPE.sub(r"\1", _first(fields, _NAME_KEYS))
    skill = make_skill_file(name, _first(fields, _DESCRIPTION_KEYS), body, fallback_name=fallback_name)
    return replace(skill, fields=tuple(item for item in fields.items() if item[0] not in ("name", "description")))


def make_skill_file(name: str, description: str, body: str, *, fallback_name: str) -> SkillFile:
    """Tidy the three parts; a missing name becomes the body's title, else ``fallback_name``.

    Raises ``SkillFileError`` when all three are empty, or the name is too long.
    """
    name, description, body = _one_line(name), _one_line(description), _clean(body).strip()
    if not (name or description or body):
        raise SkillFileError("no name, no description and no text")
    if len(name) > MAX_NAME:
        raise SkillFileError(f"its name is longer than {MAX_NAME:,} characters")
    title = "" if name else _title(body)
    return SkillFile(name or title[:MAX_NAME].strip() or _one_line(fallback_name), description, body)


def _decode(data: bytes) -> str:
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", errors="replace")
    return data.decode("utf-8", errors=_STRAY_BYTES)


def _windows_1252(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return error.object[error.start : error.end].decode("cp1252", errors="replace"), error.end


_STRAY_BYTES = "skillarena-windows-1252"
codecs.register_error(_STRAY_BYTES, _windows_1252)


def _clean(text: str) -> str:
    """Line feeds only, without invisible control characters."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return UNWANTED.sub("", text)


def _one_line(text: str) -> str:
    return " ".join(_clean(text).split())


def _first(fields: dict[str, str], keys: tuple[str, ...]) -> str:
    return next((fields[key] for key in keys if fields.get(key)), "")


def _title(body: str) -> str:
    """The first top-level heading outside code blocks."""
    in_code = False
    for line in body.split("\n"):
        if _FENCE.match(line):
            in_code = not in_code
        elif not in_code and (title := _TITLE.match(line)):
            return _one_line(title[1])
    return ""


def _split(text: str) -> tuple[dict[str, str], str]:
    """Front matter fields (keys in lower case) and body.

    A closing fence at the line's start is believed when what is above it is YAML. Otherwise the front matter ends at
    the first fence however indented, at the first heading after an empty line, or with the document.
    """
    lines = text.lstrip().split("\n")
    if lines[0].rstrip() != "---":
        return {}, text
    del lines[0]
    fence, loose = _fence(lines), _loose_end(lines)
    for end, resume in dict.fromkeys((fence or loose, loose)):
        fields = _read_yaml("\n".join(lines[:end]))
        if fields is not None:
            return fields, "\n".join(lines[resume:])
    end, resume = loose
    fields = _read_entries(lines[:end])
    return (fields, "\n".join(lines[resume:])) if fields else ({}, text)


def _fence(lines: list[str]) -> tuple[int, int] | None:
    """Number of lines of front matter and index of the body's first line, by the first fence at a line's start."""
    return next(((index, index + 1) for index, line in enumerate(lines) if line.rstrip() == "---"), None)


def _loose_end(lines: list[str]) -> tuple[int, int]:
    """The same by any fence or by the first heading after an empty line."""
    for index, line in enumerate(lines):
        if line.strip() == "---":
            return index, index + 1
        if index and not lines[index - 1].strip() and _HEADING.match(line):
            return index, index
    return len(lines), len(lines) + 1


def _read_yaml(block: str) -> dict[str, str] | None:
    """The top-level entries of a YAML mapping as written; None for anything that is not one, too large or too deep.

    Only the node tree is made, never objects: tags mean nothing, and an alias is one more reference to the same node.
    Entries that are many times longer than the block, by aliases, are none.
    """
    if len(block) > MAX_YAML_CHARS:
        return None
    try:
        root = yaml.compose(block, Loader=ShallowLoader)
    except (yaml.YAMLError, RecursionError):
        return None
    if root is None:
        return {}
    if not isinstance(root, yaml.MappingNode):
        return None
    fields = {_as_written(key, block).lower(): _as_written(value, block) for key, value in root.value}
    written = sum(len(key) + len(value) for key, value in fields.items())
    return fields if written <= _MOST_GROWTH * len(block) else None


class ShallowLoader(yaml.BaseLoader):
    """Makes texts, lists and mappings, nested up to ``_DEEPEST`` levels: deeper ones take seconds to fail."""

    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """The next node. Raises ``YAMLError``."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise yaml.YAMLError(f"nested more than {_DEEPEST} levels deep")
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


def _as_written(node: yaml.Node, block: str) -> str:
    """A scalar's text, or the source of a list or mapping."""
    if not isinstance(node, yaml.ScalarNode):
        indent = " " * node.start_mark.column  # of the first line, so that the lines below it still fit
        return textwrap.dedent(indent + block[node.start_mark.index : node.end_mark.index]).strip()
    is_null = node.style is None and node.value.lower() in ("null", "~")
    return "" if is_null else node.value.strip()


def _read_entries(block: list[str]) -> dict[str, str]:
    """Entries of broken YAML: each ``key:`` line with the lines up to the next one, as YAML if it is, else as text."""
    entries: dict[str, list[str]] = {}
    lines: list[str] = []  # of the present entry; what comes before the first key belongs to none
    for line in block:
        if key := _KEY.match(line):
            lines = entries[key[1].lower()] = []
        if not line.startswith("#"):
            lines.append(line)
    return {key: _read_entry("\n".join(entries[key])) for key in (*_NAME_KEYS, *_DESCRIPTION_KEYS) if key in entries}


def _read_entry(entry: str) -> str:
    fields = _read_yaml(entry)
    if fields and len(fields) == 1:
        return next(iter(fields.values()))
    return _plain_value(entry.split(":", 1)[1].strip())


def _plain_value(text: str) -> str:
    """The text of a value that is not YAML, without the quotes around it.

    A block marker followed by text on its line has lost its block: whatever follows is not the value.
    """
    if _BLOCK_MARKER.match(text):
        return ""
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1].strip()
    return text
