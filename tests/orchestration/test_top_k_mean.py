"""The mean of one skill and two."""

from __future__ import annotations

from typing import Any

import pytest
from row_factory import lost, make_row

from skillarena.orchestration.summary import summarise, summarise_mean
from skillarena.orchestration.top_k_mean import top_k_means

TASKS = ["t1", "t2", "t3"]


def test_each_task_counts_with_the_mean_of_its_episodes() -> None:
    one = [make_row(1, reward=100.0), make_row(2, reward=0.0, skills=()), make_row(3, reward=30.0)]
    two = [make_row(3, reward=50.0), make_row(1, reward=0.0), make_row(2, reward=0.0)]
    mean = summarise_mean([one, two], TASKS, 200)
    assert mean.estimates["reward"].mean == pytest.approx((50 + 0 + 40) / 3)
    assert mean.estimates["skills_selected"].mean == pytest.approx((2 + 1 + 2) / 3)
    assert (mean.expected, mean.scored, mean.complete) == (3, 3, True)
    assert mean.outcomes == {"solved": 6}
    low, high = mean.estimates["reward"].low, mean.estimates["reward"].high
    assert low is not None and high is not None and 0 <= low <= mean.estimates["reward"].mean <= high <= 50


def test_a_task_without_a_score_in_one_cell_enters_no_mean() -> None:
    mean = summarise_mean([[make_row(1), make_row(2, reward=0.0)], [make_row(1), lost(2)]], TASKS, 200)
    assert (mean.scored, mean.infra_errors, mean.complete) == (1, 1, False)
    assert mean.estimates["reward"].mean == 100.0


def test_a_measure_that_one_episode_does_not_know_is_left_out() -> None:
    mean = summarise_mean([[make_row(1, cost=1.0)], [make_row(1, cost=None)]], ["t1"], 200)
    assert "cost" not in mean.estimates


def test_the_mean_of_one_cell_is_the_cell() -> None:
    rows = [make_row(1, reward=10.0), make_row(2, reward=70.0)]
    assert summarise_mean([rows], TASKS, 500) == summarise(rows, TASKS, 500)


class StandIn:
    """A cell's result with only what pairing looks at."""

    def __init__(self, top_k: Any, seed: int = 0, **selector: Any) -> None:
        self.rows = (make_row(1),)
        self.summary = summarise(self.rows, ["t1"], 100)
        self.cell = self
        self.name = f"b/s vector top_k={top_k} simulated seed={seed}"
        self.tasks = (type("T", (), {"id": "t1"}),)
        self.settings = type("S", (), {"run": type("R", (), {"bootstrap_resamples": 100})})
        given = {} if top_k is None else {"top_k": top_k}
        self.identity = {"selector": {"_target_": "x", **given, **selector}, "seed": seed}


def test_only_cells_that_differ_in_nothing_but_the_size_are_paired() -> None:
    results: list[Any] = [
        StandIn(2),
        StandIn(None),
        StandIn(1),
        StandIn(3),
        StandIn(1, seed=1),
        StandIn(2, seed=2),
        StandIn(1, k=30),
    ]
    (mean,) = top_k_means(results)
    assert mean.parts == (results[2], results[0])
    assert mean.name == "b/s vector mean of top_k=1,2 simulated seed=0"
