"""Token counts where no server gives them."""

from __future__ import annotations

import math
from collections.abc import Iterable

from skillarena.orchestration.backbones.interface import Message

CHARACTERS_PER_TOKEN = 4


def estimate_tokens(text: str) -> int:
    """Roughly how many tokens ``text`` has: its characters by four, rounded up."""
    return math.ceil(len(text) / CHARACTERS_PER_TOKEN)


def estimate_prompt_tokens(messages: Iterable[Message]) -> int:
    """The same for the contents of a prompt; roles and the template's own tokens are left out."""
    return math.ceil(sum(len(message["content"]) for message in messages) / CHARACTERS_PER_TOKEN)
