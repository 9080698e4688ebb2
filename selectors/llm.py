"""The language model that selectors may ask: answers kept on disk, tokens counted."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from skillarena.conf.errors import ConfigError
from skillarena.selectors.cache import DiskCache, digest
from skillarena.selectors.measure import is_offline

_FORMAT = "chat/1"
"""Part of every key; raise the number when the fields of an answer change."""


class ChatModel(Protocol):
    """What selectors need of a model; every backbone fits."""

    identity: str
    """Server, model and request options: what an answer depends on besides the messages."""

    def chat(self, messages: Any, /) -> Any:
        """One completed call: a reply with ``text``, ``finish_reason`` and ``usage`` (prompt and completion tokens)."""

    def check(self) -> None:
        """Preflight: reachable, key accepted, model known."""


class NoModel:
    """Stands where no language model was chosen."""

    identity = "none"

    def chat(self, messages: Any, /) -> Any:
        """Raises ``ConfigError``."""
        self.check()

    def check(self) -> None:
        """Raises ``ConfigError``: a selector that asks a model was chosen, but no model."""
        raise ConfigError(
            "this selector asks a language model, and none is chosen",
            "choose one with llm=NAME, for example llm=openai_compatible llm.base_url=… llm.model=…",
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model said."""

    text: str
    cut: bool
    """It ended because it was too long."""
    prompt_tokens: int
    completion_tokens: int

    @staticmethod
    def stored(kept: bytes) -> Answer | None:
        """An answer that was kept as JSON; None for anything else, which then is asked for anew."""
        try:
            return Answer(**json.loads(kept))
        except (ValueError, TypeError, RecursionError):
            return None


@dataclass(slots=True)
class LlmUse:
    """Calls and their tokens."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    llm_calls: int = 0

    def add(self, answer: Answer) -> None:
        """Count one call."""
        self.prompt_tokens += answer.prompt_tokens
        self.completion_tokens += answer.completion_tokens
        self.llm_calls += 1


class CachedLlm:
    """A chat model whose answers outlive the process, keyed by its identity and the messages.

    Args:
        model: what answers messages that are not in the cache.
        cache: where answers are kept.
    """

    def __init__(self, model: ChatModel, cache: DiskCache) -> None:
        self.identity = model.identity
        self.simulated = bool(getattr(model, "simulated", False))
        """No language model is behind it; every result is then marked."""
        self.online = LlmUse()
        """For tasks so far. An answer found in the cache counts with what its call took, so that a method's cost does
        not depend on which method came first."""
        self.offline = LlmUse()
        """For the library (inside ``measure.offline``): calls that had to be made, those in the cache not included."""
        self._model = model
        self._cache = cache

    def check(self) -> None:
        """Preflight of the model. Raises ``BackboneError`` or ``ConfigError``."""
        self._model.check()

    def ask(self, messages: Sequence[Mapping[str, str]]) -> Answer:
        """One answer.

        Raises:
            ContextOverflow: the messages do not fit into the model.
            BackboneError: the model cannot be reached.
        """
        # Half characters, which escapes in an answer can spell, could not be sent again.
        messages = [
            {name: text.encode("utf-8", "replace").decode("utf-8") for name, text in message.items()}
            for message in messages
        ]
        key = digest(_FORMAT, self.identity, json.dumps(messages))
        stored = self._cache.get_many([key]).get(key)
        known = None if stored is None else Answer.stored(stored)
        if known is not None:
            answer = known
        else:
            reply = self._model.chat(messages)
            usage = reply.usage
            answer = Answer(reply.text, reply.finish_reason == "length", usage.prompt_tokens, usage.completion_tokens)
            self._cache.put_many({key: json.dumps(asdict(answer)).encode()})
        if not is_offline():
            self.online.add(answer)
        elif known is None:
            self.offline.add(answer)
        return answer
