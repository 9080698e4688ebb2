"""Aggregates of a cell's episodes: pure functions from rows to numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skillarena.envs.interface import EndReason
from skillarena.orchestration.bootstrap import mean_intervals
from skillarena.orchestration.ledger import EpisodeRow

MEASURES: dict[str, Callable[[EpisodeRow], float | None]] = {
    "reward": lambda row: float(row.reward or 0.0),
    "success": lambda row: float(bool(row.success)),
    "env_steps": lambda row: row.env_steps,
    "llm_turns": lambda row: row.llm_turns,
    "invalid_actions": lambda row: row.invalid_actions,
    "skill_lookups": lambda row: row.skill_lookups,
    "prompt_tokens": lambda row: row.prompt_tokens,
    "cached_tokens": lambda row: row.cached_tokens,
    "completion_tokens": lambda row: row.completion_tokens,
    "reasoning_tokens": lambda row: row.reasoning_tokens,
    "total_tokens": lambda row: row.total_tokens,
    "cost": lambda row: row.cost,
    "wasted_tokens": lambda row: row.wasted_tokens,
    "selector_tokens": lambda row: row.selector_prompt_tokens + row.selector_completion_tokens,
    "offline_tokens": lambda row: row.offline_tokens,
    "skills_selected": lambda row: len(row.skills),
    "skills_added": lambda row: row.skills_added,
    "pairs_scored": lambda row: row.pairs_scored,
    "pairs_cached": lambda row: row.pairs_cached,
    "selection_seconds": lambda row: row.selection_seconds,
    "lookup_seconds": lambda row: row.lookup_seconds,
    "wall_seconds": lambda row: row.wall_seconds,
}
"""Per-episode measures, by the name MLflow, tables and summaries use; None where a row does not know it. Rows of
infrastructure errors have none."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its 95 % percentile-bootstrap interval."""

    mean: float
    low: float | None
    """None with fewer than two episodes."""
    high: float | None
    """None with fewer than two episodes."""


@dataclass(frozen=True)
class Summary:
    """What a cell's finished episodes say."""

    expected: int
    """Tasks of the cell."""
    scored: int
    """Episodes with an outcome other than ``infra_error``; the means are over these."""
    infra_errors: int
    outcomes: dict[str, int]
    """Episodes by outcome."""
    marks: dict[str, int]
    """Scored episodes by mark (``EpisodeRow.marks``), plus those with ``tokens_estimated``."""
    estimates: dict[str, Estimate]
    """By the names of ``MEASURES``, those that every scored episode knows; empty without scored episodes."""

    @property
    def complete(self) -> bool:
        """Every task of the cell has a scored episode."""
        return self.scored == self.expected

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {**asdict(self), "complete": self.complete}


def bootstrap_mean(values: Sequence[float], resamples: int) -> Estimate:
    """Mean and 95 % percentile-bootstrap interval, seeded, so equal input gives equal output."""
    return bootstrap_means(np.asarray([values], dtype=np.float64), resamples)[0]


def bootstrap_means(columns: NDArray[np.float64], resamples: int) -> list[Estimate]:
    """``bootstrap_mean`` of each row of [measures, n] at little more than the cost of one."""
    means = columns.mean(axis=1).tolist()
    if columns.shape[1] < 2:
        return [Estimate(mean, None, None) for mean in means]
    ends = mean_intervals(columns, resamples).tolist()
    return [Estimate(low if low == high else mean, low, high) for mean, (low, high) in zip(means, ends, strict=True)]


def summarise(rows: Sequence[EpisodeRow], task_ids: Sequence[str], resamples: int) -> Summary:
    """Aggregate a cell.

    Args:
        rows: ledger rows in any order; they are put into task order first, so that the order in which episodes
            happened to finish changes nothing.
        task_ids: the cell's tasks.
        resamples: bootstrap resamples.
    """
    ordered = _in_task_order(rows, task_ids)
    measured = [_measures(row) for row in ordered if row.outcome != EndReason.INFRA_ERROR]
    return _summary(ordered, len(task_ids), measured, resamples)


def summarise_mean(runs: Sequence[Sequence[EpisodeRow]], task_ids: Sequence[str], resamples: int) -> Summary:
    """Aggregate several cells with the same tasks: each task counts with the mean of its episodes.

    Args:
        runs: ledger rows of each cell.
        task_ids: the cells' tasks; those without a scored episode in every cell enter no mean.
        resamples: bootstrap resamples.
    """
    ordered = [row for rows in runs for row in _in_task_order(rows, task_ids)]
    scored = [{row.task_id: row for row in rows if row.outcome != EndReason.INFRA_ERROR} for rows in runs]
    shared = [task_id for task_id in task_ids if all(task_id in rows for rows in scored)]
    means = [_mean_of([_measures(rows[task_id]) for rows in scored]) for task_id in shared]
    return _summary(ordered, len(task_ids), means, resamples)


def _in_task_order(rows: Sequence[EpisodeRow], task_ids: Sequence[str]) -> list[EpisodeRow]:
    by_task = {row.task_id: row for row in rows}
    return [by_task[task_id] for task_id in task_ids if task_id in by_task]


def _measures(row: EpisodeRow) -> dict[str, float | None]:
    return {name: measure(row) for name, measure in MEASURES.items()}


def _mean_of(episodes: Sequence[dict[str, float | None]]) -> dict[str, float | None]:
    """The mean of each measure that all episodes know."""
    means: dict[str, float | None] = {}
    for name in MEASURES:
        values = [value for episode in episodes if (value := episode[name]) is not None]
        means[name] = sum(values) / len(values) if len(values) == len(episodes) else None
    return means


def _summary(
    ordered: Sequence[EpisodeRow], expected: int, measured: Sequence[dict[str, float | None]], resamples: int
) -> Summary:
    valid = [row for row in ordered if row.outcome != EndReason.INFRA_ERROR]
    marks = Counter(mark for row in valid for mark in row.marks)
    estimated = sum(row.tokens_estimated for row in valid)
    return Summary(
        expected=expected,
        scored=len(measured),
        infra_errors=len(ordered) - len(valid),
        outcomes=dict(sorted(Counter(row.outcome for row in ordered).items())),
        marks=dict(sorted((marks + Counter({"tokens_estimated": estimated})).items())),
        estimates=_estimates(measured, resamples) if measured else {},
    )


def _estimates(measured: Sequence[dict[str, float | None]], resamples: int) -> dict[str, Estimate]:
    known = [name for name in MEASURES if all(episode[name] is not None for episode in measured)]
    columns = np.array([[episode[name] for episode in measured] for name in known], dtype=np.float64)
    return dict(zip(known, bootstrap_means(columns, resamples), strict=True))
