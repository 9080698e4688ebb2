"""Ledger rows for tests."""

from __future__ import annotations

from dataclasses import replace

from skillarena.orchestration.ledger import EpisodeRow

_BASE = EpisodeRow(
    episode_id="",
    task_id="",
    task_name="",
    task_type="kind",
    outcome="solved",
    reward=100.0,
    success=True,
    score=1.0,
    env_steps=5,
    llm_turns=6,
    invalid_actions=1,
    skill_lookups=0,
    prompt_tokens=1000,
    cached_tokens=700,
    completion_tokens=50,
    wasted_tokens=0,
    tokens_estimated=False,
    skills=("a", "b"),
    selection_seconds=0.1,
    selection_reused=False,
    selector_prompt_tokens=0,
    selector_completion_tokens=0,
    offline_tokens=0,
    pairs_scored=30,
    pairs_cached=0,
    marks=(),
    wall_seconds=2.0,
    llm_seconds=1.0,
    env_seconds=0.5,
    attempts=1,
    finished_at=1_700_000_000.0,
)


def make_row(number: int, **changes: object) -> EpisodeRow:
    """A row of task ``t<number>``; keyword arguments replace fields."""
    plain = {"episode_id": f"e{number}", "task_id": f"t{number}", "task_name": f"task {number}", **changes}
    return replace(_BASE, **plain)  # type: ignore[arg-type]


def lost(number: int) -> EpisodeRow:
    """A row of an episode that no attempt could finish."""
    return make_row(number, outcome="infra_error", reward=None, success=None, score=None, error="worker died")
