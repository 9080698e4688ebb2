"""What is odd about the bytes of one skill document, and what to do about it."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from skillarena.selectors.interface import Skill
from skillarena.selectors.skill_file import MAX_YAML_CHARS, UNWANTED

LONGEST_NAME, LONGEST_DESCRIPTION = 64, 1024
"""Characters, as the format's authors allow; longer ones are read, but other programs may refuse them."""
LONGEST_TEXT = 8192 * 4
"""Characters that the rerankers and embedders here read at most (8,192 tokens of four characters)."""

_FENCE = re.compile(r"^---[ \t]*$", re.MULTILINE)
_HIDDEN = re.compile("[\u061c\u200b\u200e\u200f\u2060-\u2064\U000e0000-\U000e007f]")
"""Characters that are kept and show nothing: a text can say with them what no reader sees."""
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True)
class Problem:
    """Something to mend."""

    rule: str
    """A short name, for filters."""
    message: str
    """What is wrong, one clause."""
    fix: str
    """What to do about it, one clause."""
    rejected: bool = False
    """The document is not read as it is."""


def of_skill(skill: Skill) -> Iterator[Problem]:
    """Problems of what was read, wherever it comes from."""
    if not skill.description:
        yield Problem(
            "no-description", "no description, which is what skills are found by", "add a `description:` line"
        )
    if len(skill.name) > LONGEST_NAME:
        yield Problem("long-name", f"the name has {len(skill.name)} characters", f"shorten it to {LONGEST_NAME}")
    if len(skill.description) > LONGEST_DESCRIPTION:
        size = len(skill.description)
        yield Problem(
            "long-description", f"the description has {size:,} characters", f"shorten it to {LONGEST_DESCRIPTION:,}"
        )
    if len(skill.text) > LONGEST_TEXT:
        message = (
            f"the document has {len(skill.text):,} characters; models here read the first {LONGEST_TEXT:,} at most"
        )
        yield Problem("long-text", message, "shorten it, or move parts into files of their own")


def of_text(text: str) -> Iterator[Problem]:
    """Characters that show nothing or something else than they say."""
    if unwanted := UNWANTED.findall(text.removeprefix("\ufeff")):
        what = "characters that reorder what is shown" if _BIDI.search(text) else "control characters"
        yield Problem("odd-characters", f"{what} ({_named(unwanted)}), left out when read", "delete them")
    if hidden := _HIDDEN.findall(text):
        yield Problem("hidden-characters", f"{len(hidden):,} invisible characters ({_named(hidden)})", "delete them")


def _named(characters: list[str]) -> str:
    names = sorted({f"U+{ord(character):04X}" for character in characters})
    return ", ".join(names[:5]) + (", …" if len(names) > 5 else "")


def of_bytes(data: bytes) -> Iterator[Problem]:
    """Problems of a ``SKILL.md`` file as it lies on disk."""
    text, problems = _decode(data)
    yield from problems
    yield from of_text(text)
    yield from _of_front_matter(text.removeprefix("\ufeff").replace("\r\n", "\n"))


def _decode(data: bytes) -> tuple[str, list[Problem]]:
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", errors="replace"), [Problem("encoding", "UTF-16", "save it as UTF-8")]
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"byte {error.start} is not UTF-8; such bytes are read as Windows-1252"
        return data.decode("utf-8", errors="replace"), [Problem("encoding", message, "save it as UTF-8")]
    mark = (
        [Problem("encoding", "a byte-order mark", "save it as UTF-8 without one")] if text.startswith("\ufeff") else []
    )
    return text, mark


def _of_front_matter(text: str) -> Iterator[Problem]:
    body = text.lstrip()
    if not _FENCE.match(body):
        yield Problem("no-front-matter", "no front matter", "begin with ---, name:, description:, ---")
        return
    if body != text:
        yield Problem("front-matter", "something stands before the first ---", "begin the file with ---")
    fences = [fence.start() for fence in _FENCE.finditer(body)]
    if len(fences) < 2:
        yield Problem("front-matter", "the front matter is not closed", "put a line --- after its last entry")
        return
    block = body[_FENCE.match(body).end() + 1 : fences[1]]  # type: ignore[union-attr]
    if len(block) > MAX_YAML_CHARS:
        message = f"the front matter has {len(block):,} characters and is read entry by entry"
        yield Problem("front-matter", message, f"shorten it to {MAX_YAML_CHARS:,}")
        return
    try:
        root = yaml.compose(block, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError) as error:
        yield _broken(error)
        return
    if root is None:
        yield Problem("no-name", "the front matter is empty", "add name: and description:")
    elif not isinstance(root, yaml.MappingNode):
        yield Problem(
            "front-matter", "the front matter is no list of `key: value` lines", "write name: and description:"
        )
    else:
        yield from _of_entries(root)


def _broken(error: Exception) -> Problem:
    mark = getattr(error, "problem_mark", None)
    where = f"line {mark.line + 2}: " if mark is not None else ""  # the fence is line 1
    problem = getattr(error, "problem", None) or type(error).__name__
    fix = "put the value in quotes, or indent it below `key: >`"
    return Problem("front-matter", f"{where}broken YAML ({problem}); read entry by entry", fix)


def _of_entries(root: yaml.MappingNode) -> Iterator[Problem]:
    keys = [key.value.lower() for key, _ in root.value if isinstance(key, yaml.ScalarNode)]
    for key in dict.fromkeys(key for key in keys if keys.count(key) > 1):
        yield Problem("front-matter", f"{key}: occurs {keys.count(key)} times, and the last one counts", "keep one")
    values = {key.value.lower(): value for key, value in root.value if isinstance(key, yaml.ScalarNode)}
    for key in ("name", "description"):
        value = values.get(key)
        if isinstance(value, yaml.SequenceNode | yaml.MappingNode):
            yield Problem("front-matter", f"{key}: is a list, not text", "put it in quotes, or write text")
    name = values.get("name")
    if name is None or (isinstance(name, yaml.ScalarNode) and not name.value.strip()):
        yield Problem(
            "no-name", "no name; another entry, the title or the folder's name stands in", "add a `name:` line"
        )
