"""Selectors that take part in episodes: tools for the agent, advice in the middle, lessons at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from skillarena.envs.interface import Task
from skillarena.selectors.interface import SelectedSkill, Selection, Selector, SelectorSession


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answers."""

    text: str
    """What the agent reads: one JSON object, complete whatever its length."""
    ok: bool = True
    """False when the call was refused; it then changed nothing."""
    skills: tuple[SelectedSkill, ...] = ()
    """Skills whose full text the agent has read by this."""


@runtime_checkable
class EpisodeTool(Protocol):
    """Something the agent may call instead of acting."""

    name: str
    """One word."""
    usage: str
    """Example of the arguments, as one JSON object on one line."""
    description: str
    """What it is for, one line."""

    def call(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Answer a call. Never raises for bad arguments: it answers what is wrong, with ``ok=False``."""


@dataclass(frozen=True, slots=True)
class Step:
    """One command of an episode, as a learning selector sees it."""

    action: str
    observation: str
    """The environment's answer."""
    score: float
    """Score after it, on the simulator's own scale."""
    valid: bool
    """False when the environment refused it."""


@dataclass(frozen=True, slots=True)
class EpisodeRecord:
    """A finished episode, as a learning selector sees it."""

    first_observation: str
    steps: tuple[Step, ...]
    won: bool
    reward: float
    """0 to 100 points."""
    total_tokens: int
    """The agent's prompt plus completion tokens."""
    skills: tuple[str, ...]
    """Ids of the skills that the agent read, at the start or later."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """What one episode taught a selector: plain JSON-able data, merged later in task order."""

    benchmark: str
    split: str
    task_id: str
    content: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Trigger:
    """When a session wants to be asked again in the middle of an episode."""

    stale_steps: int
    """Env steps in a row without a change of score."""
    invalid_in_a_row: int
    """Refused commands or replies without one, in a row."""
    times: int = 1
    """Most times in one episode."""


@dataclass(frozen=True, slots=True)
class Advice:
    """What a session adds in the middle of an episode."""

    guidance: str = ""
    skills: tuple[SelectedSkill, ...] = ()


@runtime_checkable
class LiveSession(SelectorSession, Protocol):
    """A session that takes part in the episode: it offers tools, gives advice or learns."""

    trigger: Trigger | None
    """When to ask for advice; None: never."""
    review: str
    """What the agent is asked after the episode, when it may only call tools; empty: nothing."""

    def advise(self, observation: str, actions: Sequence[str]) -> Advice:
        """Called when the trigger fires, with the last observation and all commands so far."""


@runtime_checkable
class LiveSelector(Selector, Protocol):
    """A selector whose sessions take part in the episode."""

    def attend(self, task: Task, selection: Selection) -> LiveSession:
        """The session for an episode that starts with a given selection. Computes nothing anew.

        ``open`` gave the selection for the same task and memory, perhaps in another process.
        """


@runtime_checkable
class LearningSelector(LiveSelector, Protocol):
    """A selector that changes from episode to episode, reproducibly.

    Its memory is a plain value. All episodes of a batch of ``episodes_per_update`` tasks start from the same memory;
    when they have ended, their lessons are merged in task order into the next one. Results therefore do not depend on
    the number of workers or on which episode ends first. The object itself holds no state between calls.
    """

    learns: bool
    """False when frozen: lessons are neither asked for nor merged."""
    episodes_per_update: int
    """Tasks in a batch; 1 is strictly one after the other."""

    def initial_memory(self) -> bytes:
        """The memory before the first episode: empty, cold-started or read from a file. Offline work."""

    def with_memory(self, memory: bytes) -> LearningSelector:
        """The same method with another memory; what depends on the library only is shared.

        Raises ``DataError`` for a damaged memory or one of another library.
        """

    def learn(self, memory: bytes, lessons: Sequence[Lesson]) -> bytes:
        """The memory after lessons, which come in task order. Pure: the same arguments give the same bytes."""

    def check_tasks(self, tasks: Sequence[Task]) -> None:
        """Preflight against leakage.

        Raises ``ConfigError`` when these tasks may not be played with this memory, or may not be learned from.
        """
