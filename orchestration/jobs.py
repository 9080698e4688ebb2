"""What the driver hands to worker processes: frozen, plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from skillarena.envs.interface import Task
from skillarena.orchestration.agent_settings import AgentSettings
from skillarena.orchestration.schedule import Ready, Unit
from skillarena.selectors.interface import Selection
from skillarena.selectors.live import Lesson

if TYPE_CHECKING:
    from ray.actor import ActorHandle

_FOR_SELECTION = ("library", "embedder", "reranker", "parser", "llm", "selector")


@dataclass(frozen=True)
class Method:
    """A selector with all it is built from."""

    sections: dict[str, dict[str, Any]]
    """Sections library, embedder, reranker, parser, llm and selector."""
    fingerprint: str
    """The library as the driver read it."""
    hosts: dict[str, ActorHandle[Any]] = field(default_factory=dict)
    """Processes that hold the embedder or the reranker, by section."""
    memory: bytes | None = None
    """Of a selector that learns; None stands for the one before the first episode."""


@dataclass(frozen=True)
class SelectionJob:
    """Choose skills for a task."""

    method: Method
    task: Task


@dataclass(frozen=True)
class LearningJob:
    """Merge what episodes have taught into the method's memory."""

    method: Method
    lessons: tuple[Lesson, ...]
    """In task order."""


@dataclass(frozen=True)
class Seat:
    """Where the session of an episode lives."""

    desk: ActorHandle[Any]
    """Actor of a ``SessionDesk``."""
    governor: ActorHandle[Any]
    method: Method
    timeout_s: float
    """For the session's start, which may include loading the method."""


@dataclass(frozen=True)
class EpisodeJob:
    """Play an episode."""

    benchmark: dict[str, Any]
    backbone: dict[str, Any]
    agent: AgentSettings
    task: Task
    selection: Selection
    episode_id: str
    seed: int
    seat: Seat | None = None
    """Of a selector that takes part in the episode."""


def method_of(unit: Unit, hosts: dict[str, ActorHandle[Any]]) -> Method:
    """The method that chooses skills for a unit."""
    sections = {part: getattr(unit.cell.settings, part) for part in _FOR_SELECTION}
    return Method(sections, unit.cell.identity["library"]["fingerprint"], hosts, unit.memory)


def episode_job(ready: Ready, seat: Seat | None) -> EpisodeJob:
    """The job of playing a unit."""
    settings = ready.unit.cell.settings
    return EpisodeJob(
        benchmark=settings.benchmark,
        backbone=settings.backbone,
        agent=settings.agent,
        task=ready.unit.task,
        selection=ready.selection,
        episode_id=ready.unit.episode_id,
        seed=settings.seed,
        seat=seat,
    )
