"""At the number of tasks that is named, about four of five repetitions find the effect."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from skillarena.orchestration.report.paired import sign_flip
from skillarena.orchestration.report.power import fewest_tasks, tasks_to_resolve


@pytest.mark.parametrize(
    ("only_first", "only_second", "level"),
    [(0.05, 0.15, 0.05), (0.1, 0.2, 0.05), (0.02, 0.06, 0.05), (0.3, 0.45, 0.05), (0.1, 0.6, 0.05), (0.1, 0.2, 0.001)],
)
def test_mcnemar_finds_the_effect_four_times_in_five(only_first: float, only_second: float, level: float) -> None:
    tasks = tasks_to_resolve(only_second - only_first, only_second + only_first, level)
    assert tasks is not None
    drawn = np.random.default_rng(1).multinomial(tasks, [only_first, only_second, 1 - only_first - only_second], 4000)
    fewer, disagreements = drawn[:, :2].min(axis=1), drawn[:, :2].sum(axis=1)
    resolved = 2 * binom.cdf(fewer, disagreements, 0.5) <= level
    assert 0.74 <= resolved.mean() <= 0.86


def test_sign_flips_find_a_difference_in_tokens_four_times_in_five() -> None:
    rng = np.random.default_rng(2)

    def differences(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        task = rng.lognormal(9, 0.6, shape)
        return task * rng.lognormal(-0.25, 0.5, shape) - task * rng.lognormal(0, 0.5, shape)

    many = differences(100_000)
    tasks = tasks_to_resolve(float(many.mean()), float((many**2).mean()))
    assert tasks is not None
    assert 0.72 <= (sign_flip(differences(300, tasks)) <= 0.05).mean() <= 0.88


def test_the_number_is_connors() -> None:
    # (1.959964 sqrt(0.3) + 0.841621 sqrt(0.3 - 0.01))**2 / 0.01 = 233.0...
    assert tasks_to_resolve(0.1, 0.3) == 234
    assert tasks_to_resolve(-0.1, 0.3) == 234


def test_a_stricter_level_takes_more_tasks_and_a_larger_effect_fewer() -> None:
    base = tasks_to_resolve(1.0, 20.0)
    assert base is not None
    assert (tasks_to_resolve(1.0, 20.0, 0.001) or 0) > base > (tasks_to_resolve(2.0, 20.0) or 0)


def test_no_effect_cannot_be_resolved() -> None:
    assert tasks_to_resolve(0.0, 0.3) is None
    assert tasks_to_resolve(0.0, 0.0) is None
    assert tasks_to_resolve(1e-16, 0.3) is None  # what adding up leaves of 0


def test_even_the_clearest_effect_takes_as_many_tasks_as_a_test_can_reject_with() -> None:
    assert tasks_to_resolve(3.0, 9.0) == fewest_tasks() == 6
    assert 2 * 0.5 ** fewest_tasks(0.001) <= 0.001 < 2 * 0.5 ** (fewest_tasks(0.001) - 1)
