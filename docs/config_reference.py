"""The reference of all configuration keys, written from the comments in conf/ and the checks in the settings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from skillarena.orchestration.settings import Settings

CONF = Path(__file__).resolve().parents[1] / "conf"

_OPENING = """# Every configuration key

Written from the comments of `conf/` when this site is built. `GROUP=CHOICE` takes a file, `KEY=VALUE` changes a value:
`skillarena run selector=vector selector.top_k=2`. `???` has no default and must be given; `null` leaves a thing out, as
its line says. `skillarena run --cfg job` prints the whole configuration of a command.
"""


def reference(conf: Path = CONF) -> str:
    """The page as Markdown: one section for the root, one for each group, one table for each choice."""
    sections = [_OPENING, "## The root\n", *_choice("", conf / "config.yaml", _limits(Settings))]
    for group in sorted(path for path in conf.iterdir() if any(path.glob("*.yaml"))):
        sections.append(f"## {group.name}\n")
        field = Settings.model_fields.get(group.name)
        limits = _limits(field.annotation) if field and isinstance(field.annotation, type) else {}
        for path in sorted(group.glob("*.yaml")):
            sections += [f"### `{group.name}={path.stem}`\n", *_choice(group.name, path, limits)]
    return "\n".join(sections)


def _choice(group: str, path: Path, limits: dict[str, str]) -> list[str]:
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    opening: list[str] = []
    for line in lines:
        if not line.startswith("# "):
            break
        opening += [line[2:]] if line != "# @package _global_" else []
    prefix = "" if group in ("", "experiment") else f"{group}."
    rows = [
        (f"`{prefix}{key}`", f"`{_cell(value)}`", _cell(" ".join(filter(None, (meaning, limits.get(key))))))
        for key, value, meaning in _keys(yaml.compose(text), lines)
    ]
    table = ["| key | value | meaning |", "|---|---|---|", *("| " + " | ".join(row) + " |" for row in rows)]
    return [" ".join(opening) + "\n", "\n".join(table) + "\n"]


def _keys(node: yaml.Node | None, lines: list[str], prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """Dotted key, value as written, and comment of every key that has a value of its own."""
    for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
        path = f"{prefix}{key.value}"
        number = key.start_mark.line
        written, _, comment = lines[number].partition("  # ")
        above = lines[number - 1].strip() if number else ""
        meaning = comment or (above[2:] if above.startswith("# ") else "")
        if isinstance(value, yaml.MappingNode) and not value.flow_style:
            yield from _keys(value, lines, f"{path}.")
        elif isinstance(value, yaml.SequenceNode) and not value.flow_style:
            yield path, ", ".join(_entry(item) for item in value.value), meaning
        elif isinstance(value, yaml.ScalarNode) and value.style in (">", "|"):
            yield path, " ".join(value.value.split())[:200], meaning
        else:
            yield path, written.partition(":")[2].strip() or "…", meaning


def _entry(node: yaml.Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return ", ".join(f"{key.value}: {value.value}" for key, value in node.value)
    return str(node.value)


def _limits(model: type) -> dict[str, str]:
    """What the settings check beyond the type, by key."""
    if not issubclass(model, BaseModel):
        return {}
    return {name: f"({found})" for name, field in model.model_fields.items() if (found := _checked(field))}


def _checked(field: FieldInfo) -> str:
    signs = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
    bounds = [
        f"{sign} {getattr(rule, name):g}"
        for rule in field.metadata
        for name, sign in signs.items()
        if hasattr(rule, name) and getattr(rule, name) < 2**62
    ]
    return f"checked: {', '.join(bounds)}" if bounds else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
