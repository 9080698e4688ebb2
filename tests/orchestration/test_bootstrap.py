"""Resampling many measures at once gives what scipy gives for each alone."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import bootstrap

from skillarena.orchestration.bootstrap import mean_intervals, resampled_means
from skillarena.orchestration.summary import bootstrap_mean, bootstrap_means


def of_scipy(values: NDArray[np.float64], resamples: int, seed: int = 0) -> tuple[float, float]:
    interval = bootstrap(
        (values,), np.mean, n_resamples=resamples, method="percentile", batch=1000, rng=np.random.default_rng(seed)
    ).confidence_interval
    return float(interval.low), float(interval.high)


def measures(n: int) -> NDArray[np.float64]:
    """Tokens, a proportion, points with ties, and seconds, of n episodes."""
    rng = np.random.default_rng(n)
    solved = np.arange(n) % 3 == 0
    return np.stack(
        [rng.lognormal(10, 1, n).round(), solved * 1.0, rng.integers(0, 4, n) * 25.0 + solved, rng.exponential(3, n)]
    )


@pytest.mark.parametrize(
    ("n", "resamples"), [(2, 10_000), (3, 10_000), (17, 1000), (140, 10_000), (143, 2500), (300, 999), (2000, 10_000)]
)
def test_every_measure_has_the_interval_scipy_gives(n: int, resamples: int) -> None:
    values = measures(n)
    intervals = mean_intervals(values, resamples)
    for row, interval in zip(values, intervals, strict=True):
        assert interval == pytest.approx(of_scipy(row, resamples), rel=1e-12, abs=1e-12)


def test_another_seed_draws_what_scipy_draws_with_it() -> None:
    values = measures(50)
    intervals = mean_intervals(values, 1000, seed=7)
    assert intervals[0] == pytest.approx(of_scipy(values[0], 1000, seed=7), rel=1e-12)
    assert intervals[0] != pytest.approx(mean_intervals(values, 1000)[0], rel=1e-12)


def test_the_resampled_means_are_scipys_one_by_one() -> None:
    values = measures(30)
    expected = bootstrap(
        (values[3],), np.mean, n_resamples=2300, method="percentile", batch=1000, rng=np.random.default_rng(0)
    ).bootstrap_distribution
    assert resampled_means(values, 2300)[3] == pytest.approx(expected, rel=1e-12)


def test_equal_values_have_exactly_that_value_as_interval() -> None:
    value = 0.1 + 0.2  # sums of it round
    assert mean_intervals(np.full((1, 7), value), 1000).tolist() == [[value, value]]
    assert mean_intervals(np.array([[value]]), 1000).tolist() == [[value, value]]


def test_a_measure_with_a_gap_has_no_interval_and_leaves_the_others_alone() -> None:
    values = measures(40)
    alone = mean_intervals(values[1:], 1000)
    values[0, 5] = np.nan
    together = mean_intervals(values, 1000)
    assert np.isnan(together[0]).all()
    assert together[1:] == pytest.approx(alone, rel=1e-12)


def test_estimates_of_one_measure_and_of_many_are_the_same() -> None:
    values = measures(140)
    for together, row in zip(bootstrap_means(values, 1000), values, strict=True):
        alone = bootstrap_mean(row.tolist(), 1000)
        assert alone.mean == row.mean()
        assert (together.mean, together.low, together.high) == pytest.approx(
            (alone.mean, alone.low, alone.high), rel=1e-12
        )


@pytest.mark.parametrize("n", [500, 4000])
def test_memory_stays_bounded(n: int) -> None:
    values = np.random.default_rng(1).exponential(1.0, (22, n))
    tracemalloc.start()
    mean_intervals(values, 10_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 150e6


def test_all_measures_of_a_cell_cost_less_than_a_quarter_of_one_by_one() -> None:
    values = np.random.default_rng(1).exponential(1.0, (22, 140))
    mean_intervals(values, 10_000)  # draws the resamples
    start = time.process_time()
    mean_intervals(values, 10_000)
    together = time.process_time() - start
    start = time.process_time()
    for row in values[:5]:
        of_scipy(row, 10_000)
    assert together < time.process_time() - start
