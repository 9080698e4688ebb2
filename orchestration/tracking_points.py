"""What MLflow's charts are drawn from: points of episodes, running means and sums, as functions of ledger rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from skillarena.envs.interface import EndReason
from skillarena.orchestration.ledger import EpisodeRow
from skillarena.orchestration.summary import MEASURES, Summary

_RUNNING = ("reward", "success", "env_steps", "total_tokens")


class CellEnd(NamedTuple):
    """How a cell ended."""

    expected: int
    """Tasks of the cell."""
    rows: Sequence[EpisodeRow]
    """Its finished episodes."""
    status: str
    """Of its run: ``FINISHED``, ``FAILED`` or ``KILLED``."""


class Point(NamedTuple):
    """One value of a metric. MLflow keeps equal points once."""

    key: str
    value: float
    timestamp: int
    """Milliseconds of Unix time."""
    step: int


def episode_points(step: int, row: EpisodeRow) -> list[Point]:
    """All measures of an episode at its place in the ledger, at the time it finished."""
    stamp = _stamp(row)
    lost = row.outcome == EndReason.INFRA_ERROR
    points = [Point("episode/infra_error", float(lost), stamp, step)]
    if not lost:
        values = {name: measure(row) for name, measure in MEASURES.items()}
        known = {name: float(value) for name, value in values.items() if value is not None}
        points += [Point(f"episode/{name}", value, stamp, step) for name, value in known.items()]
    return points


def running_points(rows: Sequence[EpisodeRow]) -> list[list[Point]]:
    """Means over all scored episodes up to each one, in the order in which they finished.

    An episode that was mended later is counted when it was mended, so no earlier point ever changes.
    """
    scored = sorted((row for row in rows if row.outcome != EndReason.INFRA_ERROR), key=lambda row: row.finished_at)
    sums = dict.fromkeys(_RUNNING, 0.0)
    found: list[list[Point]] = []
    for step, row in enumerate(scored):
        for name in _RUNNING:
            sums[name] += MEASURES[name](row) or 0.0
        found.append([Point(f"running/{name}", sums[name] / (step + 1), _stamp(row), step) for name in _RUNNING])
    return found


def summary_points(summary: Summary, rows: Sequence[EpisodeRow]) -> list[Point]:
    """A cell's aggregates, at the time of its last episode."""
    values: dict[str, float] = {
        "summary/coverage": summary.scored / summary.expected,
        "summary/episodes": summary.scored,
        "summary/infra_errors": summary.infra_errors,
    }
    values |= {f"outcome/{outcome}": summary.outcomes.get(outcome, 0) for outcome in EndReason}
    values |= {f"mark/{mark}": count for mark, count in summary.marks.items()}
    for name, estimate in summary.estimates.items():
        values[f"summary/{name}"] = estimate.mean
        if estimate.low is not None and estimate.high is not None:
            values[f"summary/{name}_ci95_low"] = estimate.low
            values[f"summary/{name}_ci95_high"] = estimate.high
    return _at_the_end(values, rows)


def sweep_points(cells: Sequence[CellEnd]) -> list[Point]:
    """Sums over a sweep's cells, at the time of the last episode."""
    rows = [row for cell in cells for row in cell.rows]
    scored = [row for row in rows if row.outcome != EndReason.INFRA_ERROR]
    expected = sum(cell.expected for cell in cells)
    values: dict[str, float] = {
        "sweep/cells": len(cells),
        "sweep/cells_finished": sum(cell.status == "FINISHED" for cell in cells),
        "sweep/episodes": len(scored),
        "sweep/coverage": len(scored) / expected if expected else 0.0,
        "sweep/infra_errors": len(rows) - len(scored),
        "sweep/total_tokens": sum(row.total_tokens for row in scored),
        "sweep/wasted_tokens": sum(row.wasted_tokens for row in rows),
        "sweep/hours_of_episodes": sum(row.wall_seconds for row in rows) / 3600,
    }
    costs = [row.cost for row in scored if row.cost is not None]
    if scored and len(costs) == len(scored):
        values["sweep/cost"] = sum(costs)
    return _at_the_end(values, rows)


def episodes_table(rows: Sequence[EpisodeRow]) -> dict[str, Any]:
    """Rows in the form of an MLflow table artifact."""
    plain = [asdict(row) for row in rows]
    columns = list(plain[0]) if plain else []
    flat = [[", ".join(value) if isinstance(value, tuple) else value for value in row.values()] for row in plain]
    return {"columns": columns, "data": flat}


def _at_the_end(values: Mapping[str, float], rows: Sequence[EpisodeRow]) -> list[Point]:
    stamp = max(map(_stamp, rows), default=0)
    return [Point(key, float(value), stamp, 0) for key, value in values.items()]


def _stamp(row: EpisodeRow) -> int:
    return int(row.finished_at * 1000)
