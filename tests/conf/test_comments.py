"""Configurations explain themselves: each file says what the choice is, each key what it is for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

CONF = Path(__file__).parents[2] / "conf"
FILES = sorted(CONF.glob("**/*.yaml"))


def keys(node: yaml.Node | None) -> Iterator[tuple[int, str]]:
    """Line number, from 0, and name of every key at any depth."""
    for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
        yield key.start_mark.line, key.value
        yield from keys(value)


def uncommented(text: str) -> list[str]:
    """Keys without a comment at the end of their line or on the line above."""
    lines = text.splitlines()
    missing = []
    for number, key in keys(yaml.compose(text)):
        above = lines[number - 1].lstrip() if number else ""
        if "  # " not in lines[number] and not above.startswith("# "):
            missing.append(key)
    return missing


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(CONF)))
def test_a_file_says_what_it_is_and_what_each_key_is_for(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    first = next(line for line in text.splitlines() if line != "# @package _global_")
    assert first.startswith("# ")
    assert uncommented(text.removeprefix("# @package _global_\n").removeprefix(first)) == []


def test_a_key_without_a_comment_is_noticed() -> None:
    assert uncommented("a: 1  # one\n# two\nb: 2\nc: 3\nd:  # four\n  e: {f: 1}\n") == ["c", "e", "f"]
