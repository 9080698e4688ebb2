"""From a model's reply to one command. Forgiving about form, never about meaning, and linear in the reply's length."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from skillarena.orchestration.dialects import MAX_COMMAND, Dialect

_THINK_TAG = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)
_FENCE_LINE = re.compile(r"^[ \t]{0,8}(?:```|~~~)[^\n`]{0,40}$", re.MULTILINE)
_DECORATION = r"[^\w\n]{0,12}"
_LINE_START = rf"^{_DECORATION}(?:\d{{1,3}}[.)]{_DECORATION})?"
_LABEL_END = r"[ \t*_`\"']{0,4}\d{0,3}[ \t*_`\"'.)]{0,4}[:：][*_`]{0,4}"
_ACTION_ON_LINE = re.compile(rf"{_LINE_START}(?:next )?actions?{_LABEL_END}", re.IGNORECASE | re.MULTILINE)
_ACTION_ANYWHERE = re.compile(rf"(?<!\w)action{_LABEL_END}", re.IGNORECASE)
_TOOL_ON_LINE = re.compile(
    rf"{_LINE_START}tool{_LABEL_END}[ \t`*_]{{0,8}}(\w{{1,40}})[ \t`*_:(]{{0,8}}", re.IGNORECASE | re.MULTILINE
)
_THOUGHT = re.compile(rf"{_LINE_START}thoughts?{_LABEL_END}", re.IGNORECASE)
_OBSERVATION = re.compile(rf"(?<!\w)observation{_LABEL_END}", re.IGNORECASE)
_LIST_MARK = re.compile(r"(?:[-*•>]{1,3}[ \t]{1,8}|\d{1,3}[.)][ \t]{1,8}){1,3}")
_QUOTES = {"`": "`", '"': '"', "'": "'", "“": "”", "‘": "’", "*": "*", "[": "]", "<": ">"}
_LONGEST_LINE = 2000
LONGEST_ARGUMENTS = 8000
"""Characters of a tool call's arguments; a call with more is refused."""
_DEEPEST_ARGUMENTS = 20  # levels of nesting, far from where recursion would end
_MOST_JSON_STARTS = 8


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A selector's tool, called."""

    name: str
    arguments: dict[str, Any] | None
    """None when what follows the name is no JSON object of reasonable size and depth."""
    text: str
    """The call as it is told again in the conversation."""


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """What a reply says."""

    thought: str
    """The reasoning before the action; empty when there is none."""
    action: str | None
    """One command in the simulator's spelling; None when the reply holds none."""
    normalised: bool = False
    """True when the spelling was changed (see ``Dialect.normalise``), not just freed of decoration."""
    tool: ToolCall | None = None
    """A tool call in place of a command."""


def parse_reply(reply: str, dialect: Dialect, *, tools: bool = False) -> ParsedReply:
    """Find the first command of ``reply``; with ``tools``, a line ``Tool:`` before any ``Action:`` is a call instead.

    Looked for in this order, after hidden reasoning (``<think>``) and code fences are gone: a JSON object with an
    ``action``; a line that begins with ``Action:``; the label inside a line; a line that is nothing but a command.
    """
    text = _FENCE_LINE.sub("", _without_thinking(reply)).strip()
    if tools and (called := _tool_call(text)):
        return called
    thought, command = _from_json(text) or _from_label(text) or _from_bare_line(text, dialect) or (text, "")
    if not 0 < len(command) <= MAX_COMMAND:
        return ParsedReply(thought, None)
    action = dialect.normalise(command)
    return ParsedReply(thought, action, normalised=action != command)


def _tool_call(text: str) -> ParsedReply | None:
    label = _TOOL_ON_LINE.search(text)
    action = _ACTION_ON_LINE.search(text)
    if label is None or (action is not None and action.start() < label.start()):
        return None
    name = label[1]
    call = ToolCall(name, {}, name)
    if (start := text.find("{", label.end(), label.end() + _LONGEST_LINE)) >= 0:
        try:
            found, _end = json.JSONDecoder().raw_decode(text, start)
            # Escapes can spell half a character, which nothing can be written with.
            written = json.dumps(found, ensure_ascii=False).encode("utf-8", "replace").decode("utf-8")
            fits = len(written) <= LONGEST_ARGUMENTS and _is_shallow(found, _DEEPEST_ARGUMENTS)
            call = ToolCall(name, json.loads(written) if fits else None, f"{name} {written[:LONGEST_ARGUMENTS]}")
        except (ValueError, RecursionError):
            call = ToolCall(name, None, f"{name} {text[start : start + _LONGEST_LINE]}")
    return ParsedReply(_thought(text[: label.start()]), None, tool=call)


def _is_shallow(value: Any, levels: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels > 0 and all(_is_shallow(item, levels - 1) for item in inner)


def _without_thinking(reply: str) -> str:
    """Drop reasoning blocks; one may lack its opening tag (it was in the prompt) or its closing tag (it was cut)."""
    kept: list[str] = []
    inside = False
    pieces = _THINK_TAG.split(reply)
    for text, slash in zip(pieces[::2], [*pieces[1::2], ""], strict=True):
        if not inside:
            kept.append(text)
        if slash and not inside:
            kept.clear()
        inside = not slash
    return "".join(kept)


def _from_json(text: str) -> tuple[str, str] | None:
    decoder = json.JSONDecoder()
    start = text.find("{")
    for _ in range(_MOST_JSON_STARTS):
        if start < 0:
            return None
        try:
            found, _end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):  # no JSON here, or nested absurdly deep
            found = None
        if isinstance(found, dict):
            fields = {str(key).lower(): value for key, value in found.items()}
            if "action" in fields:
                command = _clean(fields["action"]) if isinstance(fields["action"], str) else ""
                return str(fields.get("thought") or text[:start]).strip(), command
        start = text.find("{", start + 1)
    return None


def _from_label(text: str) -> tuple[str, str] | None:
    label = _ACTION_ON_LINE.search(text) or _ACTION_ANYWHERE.search(text)
    if label is None:
        return None
    rest = text[label.end() : label.end() + 2 * _LONGEST_LINE].lstrip(" \t\n*_")
    return _thought(text[: label.start()]), _clean(rest.split("\n", 1)[0])


def _from_bare_line(text: str, dialect: Dialect) -> tuple[str, str] | None:
    if not dialect.forms:  # without known verbs, prose and commands look alike
        return None
    lines = text.split("\n")
    for index, line in enumerate(lines):
        command = _clean(line)
        if dialect.verb(command) is not None:
            return _thought("\n".join(lines[:index])), command
    return None


def _thought(text: str) -> str:
    return _THOUGHT.sub("", text.strip(), count=1).strip(" \t\n*_#`")


def _clean(line: str) -> str:
    """Free one line of list marks, quotes, emphasis, closing punctuation and anything after ``Observation:``."""
    command = _OBSERVATION.split(line[:_LONGEST_LINE], maxsplit=1)[0]
    command = "".join(c if c.isprintable() else " " for c in command).strip()
    if mark := _LIST_MARK.match(command):
        command = command[mark.end() :]
    for _ in range(6):
        if not command or command[0] not in _QUOTES:
            break
        command = command.lstrip(command[0]).partition(_QUOTES[command[0]])[0].strip()
    return " ".join(command.strip(" *_`\"'").rstrip(".,;!").split())
