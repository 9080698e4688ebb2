"""A skill as a folder with a ``SKILL.md`` that reads back as the same skill."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from skillarena.selectors.cache import digest
from skillarena.selectors.interface import Skill
from skillarena.selectors.skill_file import MAX_YAML_CHARS, SkillFile, SkillFileError, parse_skill_file

_UNFIT = re.compile(r"[\x00-\x1f\x7f<>:\"|?*\\]")
_ESCAPE = re.compile(r"\\(?=[!-/:-@\[-`{-~])")
"""A backslash that a reader of names would take for Markdown's."""
_MOST_BYTES = 120
"""Of a folder's name; file systems take 255."""


def folder_of(skill_id: str, taken: set[str]) -> str:
    """A relative path that no other skill has and that leads nowhere else; noted in ``taken``."""
    parts = [_folder_name(part) for part in skill_id.split("/") if part.strip()]
    path = "/".join(parts) or "skill"
    if path.lower() in taken:
        path = f"{path}~{digest(skill_id).hex()[:8]}"
    taken.add(path.lower())
    return path


def write_document(skill: Skill, folder: Path) -> bool:
    """Write ``SKILL.md``: a copy of the document, or one made of its parts where it comes out of a pool.

    Returns:
        False, and nothing is written, where it would read as something else.
    """
    source = Path(skill.source)
    data = source.read_bytes() if source.is_file() else b""
    if not data or not _reads_as(skill, data, folder.name):
        data = _document(skill)
        if not _reads_as(skill, data, folder.name):
            return False
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_bytes(data)
    return True


def _folder_name(part: str) -> str:
    name = _UNFIT.sub("_", part).strip().rstrip(".") or "_"
    if name.lower() == "skill.md":
        name += "_"
    encoded = name.encode()
    if len(encoded) > _MOST_BYTES:
        name = encoded[:_MOST_BYTES].decode(errors="ignore") + "~" + digest(part).hex()[:8]
    return name


def _document(skill: Skill) -> bytes:
    head = {"name": _ESCAPE.sub(r"\\\\", skill.name)} | (
        {"description": skill.description} if skill.description else {}
    )
    block = yaml.safe_dump(head, allow_unicode=True, sort_keys=False, width=float("inf"))
    if len(block) > MAX_YAML_CHARS:  # read entry by entry then, as plain text
        block = "".join(f"{key}: {value}\n" for key, value in head.items())
    return f"---\n{block}---\n\n{skill.body}\n".encode()


def _reads_as(skill: Skill, data: bytes, folder: str) -> bool:
    try:
        read = parse_skill_file(data, fallback_name=folder)
    except SkillFileError:
        return False
    return read == SkillFile(skill.name, skill.description, skill.body, skill.fields)
