"""From what came back of an episode to its ledger row."""

from __future__ import annotations

import time
from typing import Any

from skillarena.envs.interface import EndReason
from skillarena.orchestration.backbones.reports import Spending
from skillarena.orchestration.ledger import EpisodeRow
from skillarena.orchestration.pricing import price_of
from skillarena.orchestration.schedule import Ready, Unit
from skillarena.orchestration.trajectory import Trajectory


def row_of(ready: Ready, trajectory: Trajectory, attempts: int, wasted_tokens: int, node: str) -> EpisodeRow:
    """The row of an episode that was played to its end.

    Args:
        ready: the unit and its selection.
        trajectory: the accepted attempt.
        attempts: attempts made, this one included.
        wasted_tokens: tokens of the attempts that broke off.
        node: Ray's id of the node that played it.
    """
    usage, selection = trajectory.usage, ready.selection
    price = price_of(ready.unit.cell.settings.backbone, "backbone")
    normalised = ("action_normalised",) if trajectory.normalised_actions else ()
    return EpisodeRow(
        **_identity(ready.unit),
        outcome=trajectory.outcome.value,
        reward=trajectory.reward,
        success=trajectory.won,
        score=trajectory.score,
        env_steps=trajectory.env_steps,
        llm_turns=trajectory.llm_turns,
        invalid_actions=trajectory.invalid_actions,
        skill_lookups=trajectory.skill_lookups,
        prompt_tokens=usage.prompt_tokens,
        cached_tokens=usage.cached_tokens,
        completion_tokens=usage.completion_tokens,
        wasted_tokens=usage.wasted_tokens + wasted_tokens,
        tokens_estimated=usage.estimated,
        skills=trajectory.skills,
        selection_seconds=selection.cost.seconds,
        selection_reused=ready.reused,
        selector_prompt_tokens=selection.cost.prompt_tokens,
        selector_completion_tokens=selection.cost.completion_tokens,
        offline_tokens=0 if ready.reused else selection.cost.offline_tokens,
        pairs_scored=selection.cost.pairs_scored,
        pairs_cached=selection.cost.pairs_cached,
        marks=(*selection.marks, *normalised),
        wall_seconds=trajectory.seconds,
        llm_seconds=trajectory.llm_seconds,
        env_seconds=trajectory.env_seconds,
        attempts=attempts,
        finished_at=time.time(),
        reasoning_tokens=usage.reasoning_tokens,
        cost=price.cost(usage) if price else None,
        node=node,
        skills_added=len(trajectory.skills_read) - len(trajectory.skills),
        lookup_seconds=trajectory.tool_seconds,
        memory=ready.unit.memory_file,
    )


def spending_of(row: EpisodeRow) -> Spending:
    """What an episode took, for the run's budget."""
    return Spending(row.total_tokens + row.wasted_tokens, row.cost or 0.0)


def lost_row(unit: Unit, attempts: int, reason: str, wasted_tokens: int) -> EpisodeRow:
    """The row of an episode that no attempt could finish."""
    return EpisodeRow(
        **_identity(unit),
        outcome=EndReason.INFRA_ERROR.value,
        reward=None,
        success=None,
        score=None,
        env_steps=0,
        llm_turns=0,
        invalid_actions=0,
        skill_lookups=0,
        prompt_tokens=0,
        cached_tokens=0,
        completion_tokens=0,
        wasted_tokens=wasted_tokens,
        tokens_estimated=False,
        skills=(),
        selection_seconds=0.0,
        selection_reused=False,
        selector_prompt_tokens=0,
        selector_completion_tokens=0,
        offline_tokens=0,
        pairs_scored=0,
        pairs_cached=0,
        marks=(),
        wall_seconds=0.0,
        llm_seconds=0.0,
        env_seconds=0.0,
        attempts=attempts,
        finished_at=time.time(),
        error=reason,
    )


def _identity(unit: Unit) -> dict[str, Any]:
    task = unit.task
    return {
        "episode_id": unit.episode_id,
        "task_id": task.id,
        "task_name": task.name,
        "task_type": task.task_type,
    }
