"""Paired tests agree with references and with cases small enough for pencil and paper."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binomtest, permutation_test

from skillarena.orchestration.report.paired import (
    FLIPS,
    MCNEMAR,
    SIGN_FLIP,
    mcnemar,
    mean_effects,
    proportions_interval,
    sign_flip,
    success_effects,
)


def flipped_by_scipy(differences: NDArray[np.float64]) -> float:
    result = permutation_test(
        (differences,), lambda d, axis: d.mean(axis), permutation_type="samples", vectorized=True, n_resamples=2**17
    )
    return float(result.pvalue)


@pytest.mark.parametrize(
    ("only_first", "only_second", "p"),
    [(0, 0, 1.0), (0, 1, 1.0), (3, 3, 1.0), (0, 5, 2 / 32), (6, 0, 2 / 64), (1, 8, 20 / 512), (7, 2, 92 / 512)],
)
def test_mcnemar_by_hand(only_first: int, only_second: int, p: float) -> None:
    assert mcnemar(only_first, only_second) == pytest.approx(p, abs=1e-12)


def test_mcnemar_is_the_binomial_test_of_the_disagreements() -> None:
    for only_first, only_second in product((0, 1, 2, 5, 11, 40), (1, 3, 9, 17, 60)):
        expected = binomtest(only_first, only_first + only_second, 0.5).pvalue
        assert mcnemar(only_first, only_second) == pytest.approx(expected, rel=1e-12)


def test_sign_flips_by_hand() -> None:
    # Of the eight sums of +-1 +-2 +-3 only 6 and -6 reach 6; six of them reach 2.
    assert sign_flip(np.array([[1.0, 2.0, 3.0], [-1.0, -2.0, -3.0], [3.0, 1.0, -2.0]])).tolist() == [0.25, 0.25, 0.75]
    assert sign_flip(np.array([[5.0], [0.0]])).tolist() == [1.0, 1.0]
    assert sign_flip(np.array([[2.0] * 6, [0.0] * 6])).tolist() == [2 / 64, 1.0]


@pytest.mark.parametrize("tasks", [2, 5, 9, 13, 16])
def test_sign_flips_of_few_tasks_are_those_of_scipy(tasks: int) -> None:
    rng = np.random.default_rng(tasks)
    differences = np.stack([rng.normal(0.3, 1, tasks), rng.integers(-3, 5, tasks), rng.lognormal(0, 1, tasks)])
    expected = [flipped_by_scipy(row) for row in differences]
    assert sign_flip(differences) == pytest.approx(expected, rel=1e-12)


def test_random_sign_flips_estimate_the_exact_p_value() -> None:
    differences = np.random.default_rng(4).integers(-4, 7, (3, 16)).astype(float)
    exact = sign_flip(differences)
    sampled = sign_flip(np.hstack([differences, np.zeros((3, 4))]))  # 20 tasks; zeros change nothing
    assert sampled == pytest.approx(exact, abs=5 * np.sqrt(0.25 / FLIPS))


def test_differences_of_one_size_are_tested_exactly_at_any_number() -> None:
    signs = np.array([1.0] * 22 + [-1.0] * 9 + [0.0] * 109)
    assert sign_flip(np.stack([signs, 100 * signs])).tolist() == [mcnemar(9, 22)] * 2


def test_the_least_p_value_survives_a_large_table() -> None:
    p = sign_flip(np.random.default_rng(0).normal(3, 1, (1, 140)))[0]
    assert p == 1 / (FLIPS + 1)
    assert 1000 * p < 0.05


def test_the_interval_of_proportions_by_hand() -> None:
    # 21 tasks, 7 solved by the first alone and 1 by the second: 2/23 - 8/23 -+ 1.96 sqrt((10/23 - (6/23)**2) / 23)
    low, high = proportions_interval(7, 1, 21)
    assert (low, high) == pytest.approx((-0.508359, -0.013380), abs=1e-6)
    assert proportions_interval(1, 7, 21) == pytest.approx((-high, -low), abs=1e-12)


def test_without_disagreements_the_interval_is_not_a_point() -> None:
    low, high = proportions_interval(0, 0, 140)
    assert -0.03 < low < 0 < high < 0.03


@pytest.mark.parametrize(("first", "second", "tasks"), [(0.02, 0.02, 60), (0.1, 0.25, 40), (0.05, 0.0, 100)])
def test_the_interval_of_proportions_covers_the_truth(first: float, second: float, tasks: int) -> None:
    drawn = np.random.default_rng(1).multinomial(tasks, [first, second, 1 - first - second], 2000)
    outcomes, counts = np.unique(drawn[:, :2], axis=0, return_counts=True)
    ends = [proportions_interval(one, other, tasks) for one, other in outcomes.tolist()]
    covered = sum(count for (low, high), count in zip(ends, counts, strict=True) if low <= second - first <= high)
    assert covered / 2000 >= 0.94


def test_a_mean_effect_says_everything_about_its_tasks() -> None:
    first, second = np.array([1.0, 2.0, np.nan, 4.0]), np.array([2.0, 4.0, 5.0, np.nan])
    (effect,) = mean_effects([(first, second)])
    assert (effect.test, effect.tasks) == (SIGN_FLIP, 2)
    assert (effect.first_mean, effect.second_mean, effect.difference) == (1.5, 3.0, 1.5)
    assert (effect.low, effect.high) == (1.0, 2.0)
    assert (effect.p, effect.mean_square) == (0.5, 2.5)


def test_effects_do_not_depend_on_what_else_is_compared() -> None:
    rng = np.random.default_rng(2)
    pairs = [(rng.exponential(9, n), rng.exponential(9, n)) for n in (30, 12, 30, 31)]
    for together, pair in zip(mean_effects(pairs), pairs, strict=True):
        (alone,) = mean_effects([pair])
        assert together.p == alone.p
        assert together.low == pytest.approx(alone.low, rel=1e-12)


def test_turning_a_comparison_round_turns_the_effect_round() -> None:
    rng = np.random.default_rng(3)
    first, second = rng.exponential(9, 60), rng.exponential(12, 60)
    there, back = mean_effects([(first, second), (second, first)])
    assert there.p == back.p
    assert (there.low, there.high) == pytest.approx((-(back.high or 0), -(back.low or 0)), rel=1e-12)


@pytest.mark.parametrize("effects", [mean_effects, success_effects])
def test_without_shared_tasks_there_is_nothing_to_say(effects: object) -> None:
    (effect,) = effects([(np.array([np.nan, 1.0]), np.array([1.0, np.nan]))])  # type: ignore[operator]
    assert effect.tasks == 0
    assert {effect.first_mean, effect.second_mean, effect.difference, effect.low, effect.high, effect.p} == {None}


def test_one_task_has_no_interval_of_a_mean_and_settles_nothing() -> None:
    (mean,) = mean_effects([(np.array([3.0]), np.array([90.0]))])
    assert (mean.low, mean.high, mean.p) == (None, None, 1.0)
    (success,) = success_effects([(np.array([0.0]), np.array([1.0]))])
    assert success.p == 1.0


def test_equal_methods_differ_by_nothing() -> None:
    values = np.array([0.0, 1.0, 1.0, 0.0])
    (mean,) = mean_effects([(values, values)])
    assert (mean.difference, mean.low, mean.high, mean.p) == (0.0, 0.0, 0.0, 1.0)
    (success,) = success_effects([(values, values)])
    assert (success.difference, success.p) == (0.0, 1.0)


def test_yes_or_no_gets_mcnemar_and_averages_get_sign_flips() -> None:
    yes_or_no = np.array([0.0, 1.0, 1.0, 0.0, 0.0]), np.array([1.0, 1.0, 0.0, 1.0, np.nan])
    averaged = np.array([0.0, 0.5, 1.0, 0.0, 0.0]), np.array([1.0, 1.0, 0.0, 1.0, np.nan])
    plain, mean, again = success_effects([yes_or_no, averaged, yes_or_no])
    assert (plain.test, plain.tasks, plain.p) == (MCNEMAR, 4, mcnemar(1, 2))
    assert plain == again
    assert (mean.test, mean.tasks) == (SIGN_FLIP, 4)
    assert mean.p == pytest.approx(flipped_by_scipy(np.array([1.0, 0.5, -1.0, 1.0])), rel=1e-12)
