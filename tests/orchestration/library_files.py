"""Skill documents and pools to write in tests of `skillarena library`, and what it says of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from skillarena.selectors.library import SkillLibrary

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"

LONG = " ".join(f"word{number}" for number in range(200))


def write(folder: Path, **documents: str | bytes) -> Path:
    """A tree with a document in a folder of each name."""
    for name, text in documents.items():
        (folder / name).mkdir(parents=True)
        (folder / name / "SKILL.md").write_bytes(text.encode() if isinstance(text, str) else text)
    return folder


def skill(name: str, description: str = "does it", body: str = LONG, more: str = "") -> str:
    return f"---\nname: {name}\ndescription: {description}\n{more}---\n\n{body}\n"


def pool(path: Path, *records: Sequence[str]) -> Path:
    keys = ("skill_id", "name", "description", "body")
    path.write_text("\n".join(json.dumps(dict(zip(keys, record, strict=True))) for record in records))
    return path


def contents(library: SkillLibrary) -> list[tuple[str, str, str]]:
    return sorted((skill.name, skill.description, skill.body) for skill in library.skills)


def read_json(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)
