"""A stand-in for a language model that ranks skills: no model, just common words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from skillarena.conf.errors import ConfigError

_TASK = re.compile(r"^Task:\n(.*?)\n\n", re.DOTALL | re.MULTILINE)
_SKILL = re.compile(r"^<skill id=(\w+)>\n(.*?)\n</skill>$", re.DOTALL | re.MULTILINE)
_WORD = re.compile(r"\w+")
_CHARS_A_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens, estimated from text length."""

    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class Reply:
    """A ranking."""

    text: str
    usage: Usage
    finish_reason: str = "stop"


class WordRanker:
    """Ranks the skills of an ``LlmSelector`` prompt by how many of the task's words they hold.

    It exercises that method without a key. What it chooses says nothing about any model, and every result made with it
    is marked as simulated.
    """

    identity = "simulated/common words/1"
    simulated = True

    def chat(self, messages: Sequence[Mapping[str, str]], /) -> Reply:
        """The ids of the first message's skills, best first; ties keep their order.

        Raises:
            ConfigError: the message is no ranking prompt.
        """
        prompt = messages[0]["content"]
        task, skills = _TASK.search(prompt), _SKILL.findall(prompt)
        if task is None or not skills:
            raise ConfigError(
                "the simulated language model can rank skills, nothing else",
                "choose a real one, for example llm=deepseek_v4_flash, or options of the selector that ask none",
            )
        wanted = set(_WORD.findall(task[1].lower()))
        shared = {skill_id: len(wanted & set(_WORD.findall(text.lower()))) for skill_id, text in skills}
        text = ", ".join(sorted(shared, key=lambda skill_id: -shared[skill_id]))
        return Reply(text, Usage(len(prompt) // _CHARS_A_TOKEN, len(text) // _CHARS_A_TOKEN))

    def check(self) -> None:
        """Nothing to reach."""
