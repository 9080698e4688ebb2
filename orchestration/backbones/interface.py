"""One LLM call, whatever answers it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypedDict, runtime_checkable

from skillarena.envs.interface import Task
from skillarena.orchestration.agent_session import ToolInfo
from skillarena.selectors.interface import SelectedSkill


class Message(TypedDict):
    """One chat message."""

    role: str
    """``system``, ``user`` or ``assistant``."""
    content: str


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one or more calls."""

    prompt_tokens: int = 0
    """All prompt tokens, cached ones included."""
    cached_tokens: int = 0
    """The part of ``prompt_tokens`` that the server took from its prefix cache."""
    completion_tokens: int = 0
    """Generated tokens, reasoning included."""
    estimated: bool = False
    """True when at least one call came without usage and was estimated from text length."""
    wasted_tokens: int = 0
    """Tokens of calls whose reply could not be used and was asked for again (in no other count)."""
    reasoning_tokens: int = 0
    """The part of ``completion_tokens`` that the model thought with before its text; 0 where the server says nothing
    about it, which some do although the model thinks."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.cached_tokens + other.cached_tokens,
            self.completion_tokens + other.completion_tokens,
            self.estimated or other.estimated,
            self.wasted_tokens + other.wasted_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
        )

    @property
    def total_tokens(self) -> int:
        """Prompt plus completion."""
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to one call."""

    text: str
    usage: Usage
    finish_reason: str
    """``stop``, ``length`` or the server's own word."""
    latency_s: float
    """Seconds from the first attempt to the accepted reply, retries and waits included."""


@dataclass(frozen=True, slots=True)
class EpisodeContext:
    """What surrounds a call. Real models use ``episode_id`` (routing) and ``seed`` only."""

    episode_id: str
    seed: int
    task: Task
    skills: tuple[SelectedSkill, ...]
    """Skills that the agent has read by now."""
    plan: Callable[[], list[str]]
    """Privileged: actions from the present state to success (``TextEnv.plan``), for the simulated backbone only."""
    guidance: str = ""
    """Guidance that the agent has read by now."""
    tools: tuple[ToolInfo, ...] = ()
    """Tools that a call may name in place of a command."""
    over: bool = False
    """The episode has ended; only tools may be called."""


@runtime_checkable
class Backbone(Protocol):
    """A chat model. Thread-safe; built from configuration with keyword arguments only."""

    name: str
    """Model name for tables."""
    simulated: bool
    """True when no language model is behind it; every result is then marked."""

    def chat(self, messages: Sequence[Message], episode: EpisodeContext | None = None) -> Reply:
        """One completed call. Raises ``BackboneError`` when retries are used up; ``ContextOverflow`` if too long."""

    def check(self) -> None:
        """Preflight: reachable, key accepted, model known. Raises ``BackboneError`` with the fix."""

    def close(self) -> None:
        """Free connections."""
