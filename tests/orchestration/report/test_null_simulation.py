"""Equal methods are told apart as rarely as the level says: 500 pairs of the same policy with other seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from skillarena.orchestration.report.paired import MCNEMAR, SIGN_FLIP, Effect, Pair, mean_effects, success_effects

REPEATS, TASKS = 500, 140
FEWEST, MOST = binom.ppf([0.0005, 0.9995], REPEATS, 0.05)
"""Rejections at the 5 % level that chance allows in 999 of 1000 simulations."""

Values = NDArray[np.float64]


class Policy:
    """Plays tasks that are easy or hard, long or short, as skewed as real ones."""

    def __init__(self, seed: int) -> None:
        tasks = np.random.default_rng(0)
        self.chance = tasks.beta(0.7, 0.7, TASKS)
        self.length = tasks.integers(4, 20, TASKS)
        self.rng = np.random.default_rng(seed)

    def play(self) -> dict[str, Values]:
        solved = self.rng.random(TASKS) < self.chance
        steps = np.where(solved, np.minimum(30, self.length + self.rng.geometric(0.2, TASKS)), 30).astype(float)
        part = self.rng.choice([0.0, 8.0, 25.0, 50.0, 75.0], TASKS)
        return {
            "success": solved.astype(float),
            "reward": np.where(solved, 100.0, part),
            "env_steps": steps,
            "total_tokens": (steps**2 * self.rng.lognormal(4, 0.8, TASKS)).round(),
        }


@pytest.fixture(scope="module")
def played() -> tuple[list[dict[str, Values]], list[dict[str, Values]]]:
    first, second = Policy(1), Policy(2)
    return [first.play() for _ in range(REPEATS)], [second.play() for _ in range(REPEATS)]


def rejections(effects: Sequence[Effect]) -> int:
    return sum(effect.p is not None and effect.p <= 0.05 for effect in effects)


def test_mcnemar_keeps_its_level(played: tuple[list[dict[str, Values]], list[dict[str, Values]]]) -> None:
    effects = success_effects([(one["success"], other["success"]) for one, other in zip(*played, strict=True)])
    assert {effect.test for effect in effects} == {MCNEMAR}
    assert 0 < rejections(effects) <= MOST  # exact tests of counts reject less often than their level


@pytest.mark.parametrize("measure", ["reward", "env_steps", "total_tokens"])
def test_sign_flips_keep_their_level(
    played: tuple[list[dict[str, Values]], list[dict[str, Values]]], measure: str
) -> None:
    effects = mean_effects([(one[measure], other[measure]) for one, other in zip(*played, strict=True)], 100)
    assert {effect.test for effect in effects} == {SIGN_FLIP}
    assert FEWEST <= rejections(effects) <= MOST


def test_the_fallback_for_averaged_success_keeps_its_level(
    played: tuple[list[dict[str, Values]], list[dict[str, Values]]],
) -> None:
    first, second = played
    mean = [
        (one["success"] + next_one["success"]) / 2 for one, next_one in zip(first, first[1:] + first[:1], strict=True)
    ]
    effects = success_effects([(one, other["success"]) for one, other in zip(mean, second, strict=True)], 100)
    assert {effect.test for effect in effects} == {SIGN_FLIP}
    assert FEWEST <= rejections(effects) <= MOST


@pytest.mark.parametrize("effects_of", [mean_effects, success_effects])
def test_few_tasks_do_not_loosen_the_level(
    played: tuple[list[dict[str, Values]], list[dict[str, Values]]],
    effects_of: Callable[[Sequence[Pair], int], list[Effect]],
) -> None:
    measure = "total_tokens" if effects_of is mean_effects else "success"
    pairs = [(one[measure][:10], other[measure][:10]) for one, other in zip(*played, strict=True)]
    assert rejections(effects_of(pairs, 100)) <= MOST
