"""Aggregates follow from the rows alone."""

from __future__ import annotations

import random

import numpy as np
import pytest
from row_factory import lost, make_row

from skillarena.orchestration.summary import bootstrap_mean, summarise

IDS = [f"t{n}" for n in range(5)]


def test_means_are_over_scored_episodes_and_infra_errors_stay_out() -> None:
    rows = [make_row(0, reward=100.0), make_row(1, reward=50.0, success=False, outcome="step_limit"), lost(2)]
    summary = summarise(rows, IDS, 200)
    assert summary.estimates["reward"].mean == 75.0
    assert summary.estimates["success"].mean == 0.5
    assert (summary.expected, summary.scored, summary.infra_errors) == (5, 2, 1)
    assert not summary.complete
    assert summary.outcomes == {"infra_error": 1, "solved": 1, "step_limit": 1}


def test_the_order_in_which_episodes_finished_changes_nothing() -> None:
    rows = [make_row(n, reward=float(n * 7 % 5), env_steps=n) for n in range(5)]
    shuffled = rows[:]
    random.Random(1).shuffle(shuffled)
    assert shuffled != rows
    assert summarise(rows, IDS, 500) == summarise(shuffled, IDS, 500)


def test_the_interval_covers_the_mean_and_matches_the_normal_approximation() -> None:
    values = np.random.default_rng(3).normal(10, 2, 400)
    estimate = bootstrap_mean(list(values), 5000)
    assert estimate.low is not None and estimate.high is not None
    half = 1.96 * values.std() / np.sqrt(len(values))
    assert estimate.low == pytest.approx(values.mean() - half, abs=0.05)
    assert estimate.high == pytest.approx(values.mean() + half, abs=0.05)


def test_one_episode_has_no_interval_and_equal_episodes_a_point() -> None:
    assert bootstrap_mean([3.0], 100).low is None
    estimate = bootstrap_mean([3.0, 3.0], 100)
    assert (estimate.low, estimate.high) == (3.0, 3.0)


def test_without_scored_episodes_there_are_no_estimates() -> None:
    assert summarise([lost(0)], IDS, 100).estimates == {}


def test_marks_and_estimated_tokens_are_counted() -> None:
    rows = [make_row(0, marks=("parse_fallback",), tokens_estimated=True), make_row(1, marks=("parse_fallback",))]
    assert summarise(rows, IDS, 100).marks == {"parse_fallback": 2, "tokens_estimated": 1}


def test_cost_has_a_mean_only_where_every_episode_has_a_price() -> None:
    priced = [make_row(n, cost=0.1 * n) for n in range(1, 4)]
    ids = [row.task_id for row in priced]
    assert summarise(priced, ids, 200).estimates["cost"].mean == pytest.approx(0.2)
    unknown = [*priced[:2], make_row(3, cost=None)]
    assert "cost" not in summarise(unknown, ids, 200).estimates
