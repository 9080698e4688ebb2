"""A chat model that ranks skills as it is told, and what it and a selection say of each other."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from skillarena.conf.errors import ContextOverflow
from skillarena.selectors.interface import Selection

Reply = str | Exception | Callable[[list[str]], str]


def asked_ids(messages: Sequence[dict[str, str]]) -> list[str]:
    """The ids of a prompt, read as a model would: where a fence opens."""
    return re.findall(r"^<skill id=(\w+)>$", messages[0]["content"], re.MULTILINE)


@dataclass
class Model:
    """A chat model that gives its replies in turn, the last one for ever; functions get the prompt's ids."""

    replies: Sequence[Reply]
    identity: str = "scripted"
    context: int | None = None
    """Most characters of all messages."""
    finish_reason: str = "stop"
    seen: list[list[dict[str, str]]] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)
    """Lengths of the prompts that did not fit."""

    def chat(self, messages: Any, /) -> Any:
        length = sum(len(message["content"]) for message in messages)
        if self.context is not None and length > self.context:
            self.refused.append(length)
            raise ContextOverflow("too long")
        self.seen.append([dict(message) for message in messages])
        reply = self.replies[min(len(self.seen), len(self.replies)) - 1]
        if isinstance(reply, Exception):
            raise reply
        text = reply if isinstance(reply, str) else reply(asked_ids(messages))
        usage = SimpleNamespace(prompt_tokens=length, completion_tokens=len(text))
        return SimpleNamespace(text=text, usage=usage, finish_reason=self.finish_reason)

    def check(self) -> None: ...


def backwards(ids: list[str]) -> str:
    return str(ids[::-1]).replace("'", '"')


def recalled(selection: Selection) -> list[str]:
    return [row["id"] for row in selection.details["candidates"]]
