"""What the driver hands to worker processes: frozen, plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from skillarena.envs.interface import Task
from skillarena.orchestration.agent_settings import AgentSettings
from skillarena.orchestration.schedule import Ready, Unit
from skillarena.selectors.interface import Selection

if TYPE_CHECKING:
    from ray.actor import ActorHandle

_FOR_SELECTION = ("library", "embedder", "reranker", "parser", "llm", "selector")


@dataclass(frozen=True)
class SelectionJob:
    """What a selection worker needs."""

    sections: dict[str, dict[str, Any]]
    """Sections library, embedder, reranker, parser, llm and selector."""
    fingerprint: str
    """The library as the driver read it."""
    task: Task
    hosts: dict[str, ActorHandle[Any]] = field(default_factory=dict)
    """Processes that hold the embedder or the reranker, by section."""


@dataclass(frozen=True)
class EpisodeJob:
    """What a rollout worker needs."""

    benchmark: dict[str, Any]
    backbone: dict[str, Any]
    agent: AgentSettings
    task: Task
    selection: Selection
    episode_id: str
    seed: int


def selection_job(unit: Unit, hosts: dict[str, ActorHandle[Any]]) -> SelectionJob:
    """The job of computing a unit's selection."""
    settings = unit.cell.settings
    sections = {part: getattr(settings, part) for part in _FOR_SELECTION}
    return SelectionJob(sections, unit.cell.identity["library"]["fingerprint"], unit.task, hosts)


def episode_job(ready: Ready) -> EpisodeJob:
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
    )
