"""How the simulated policy uses a selector's tools: in their order, often enough to exercise them."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from typing import Any

from skillarena.orchestration.agent_session import ToolInfo
from skillarena.orchestration.backbones.interface import EpisodeContext, Message

_CALLS_FIRST = 2  # the first two tools are called before the first command: a search, then what it found
_MADE = re.compile(r"^Tool: ", re.MULTILINE)
_ID = re.compile(r'"(?:skill_id|id)": ?"([^"]{1,200})"')
_ASKS = ("query", "queries", "question")
_NAMES_SKILL = re.compile(r"skill|\bids?\b|source|target|name")


def next_call(episode: EpisodeContext, messages: Sequence[Message], rng: random.Random) -> str | None:
    """The tool call that comes now, as ``NAME ARGUMENTS``; None when it is time to act.

    The first two tools are called once each before anything is done, and one of the others at random when the episode
    is over. Arguments are a tool's example with the goal for a question and ids out of earlier answers for skills.
    """
    made = sum(len(_MADE.findall(message["content"])) for message in messages if message["role"] == "assistant")
    if episode.over:
        others = episode.tools[_CALLS_FIRST:]
        asked_now = messages[-1]["content"].startswith("Tool answer:") or not others
        return None if asked_now else _call(rng.choice(others), episode, messages, rng)
    if made >= min(_CALLS_FIRST, len(episode.tools)):
        return None
    return _call(episode.tools[made], episode, messages, rng)


def _call(tool: ToolInfo, episode: EpisodeContext, messages: Sequence[Message], rng: random.Random) -> str:
    heard = "\n".join(message["content"] for message in messages if message["content"].startswith("Tool answer:"))
    ids = list(dict.fromkeys(_ID.findall(heard)))
    first, rest = ids[:1], ids[1:]
    if episode.over:  # no two reviews should say the same
        rng.shuffle(rest)
    names = iter(first + rest)
    arguments = {key: _fill(key, value, episode.task.goal, names) for key, value in json.loads(tool.usage).items()}
    return f"{tool.name} {json.dumps(arguments, ensure_ascii=False)}"


def _fill(key: str, example: Any, goal: str, names: Iterator[str]) -> Any:
    if isinstance(example, list):
        return [_fill(key, item, goal, names) for item in example[:1]]
    if not isinstance(example, str):
        return example
    if key in _ASKS:
        return goal
    return next(names, example) if _NAMES_SKILL.search(key) else example
