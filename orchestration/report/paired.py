"""Two methods on the same tasks: effects, intervals and tests. Pure functions of numbers.

* Success that is yes or no: McNemar's exact test, and the interval of Bonett and Price (2012) for a difference of
  paired proportions, which stays sound where the methods hardly ever disagree.
* Everything else (points, steps, tokens, and success averaged over sizes or seeds): a sign-flip permutation test of the
  mean difference, and the paired percentile bootstrap for its interval.

If two methods are alike, each task's difference is as likely to be positive as negative, whatever its size; the p value
is the share of sign patterns whose mean difference is at least as far from zero as the observed one. That is exact for
any number of tasks, while p values read from the bootstrap reject equal methods too often below about 50 tasks. For
yes-or-no values it is McNemar's exact test.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from skillarena.orchestration.bootstrap import CONFIDENCE, mean_intervals, one_thread

MCNEMAR = "exact McNemar"
SIGN_FLIP = "sign-flip permutation"

RESAMPLES = 10_000
"""Of the bootstrap intervals."""
FLIPS = 100_000
"""Sign patterns: all of them up to 16 tasks, else as many random ones. Ten times the resamples, so that the least p
value (1e-5) survives the correction for a table with thousands of comparisons."""

_BATCH = 4096  # sign patterns at a time
_COLUMNS = 256  # differences at a time
_TIE = 1 - 1e-12  # sums of one size differ in their last digits, by the order of adding


@dataclass(frozen=True, slots=True)
class Effect:
    """Second minus first, over the tasks that both have a value for. Without such tasks all numbers are None."""

    test: str
    tasks: int
    first_mean: float | None = None
    second_mean: float | None = None
    difference: float | None = None
    low: float | None = None
    """Lower end of the 95 % interval of the difference; None with fewer than two tasks."""
    high: float | None = None
    p: float | None = None
    """Two-sided, not corrected for other comparisons."""
    mean_square: float | None = None
    """Mean of the squared differences of tasks: what the test's spread is made of."""


Pair = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Values of the first and of the second method: float64 [tasks] each, NaN where there is none."""


def mean_effects(pairs: Sequence[Pair], resamples: int = RESAMPLES) -> list[Effect]:
    """Differences of means, with paired bootstrap intervals and sign-flip tests; many pairs cost little more than one.

    Args:
        pairs: values of the same tasks; a task without a value on one side is left out.
        resamples: of the bootstrap.
    """
    known = [_known(pair) for pair in pairs]
    effects = [Effect(SIGN_FLIP, 0)] * len(known)
    for numbers in _of_one_length(known):
        differences = np.array([known[number][1] - known[number][0] for number in numbers])
        intervals, p_values = mean_intervals(differences, resamples), sign_flip(differences)
        for row, number in enumerate(numbers):
            low, high = map(float, intervals[row]) if differences.shape[1] > 1 else (None, None)
            effects[number] = _effect(SIGN_FLIP, known[number], low, high, float(p_values[row]))
    return effects


def success_effects(pairs: Sequence[Pair], resamples: int = RESAMPLES) -> list[Effect]:
    """Differences of success rates, with exact McNemar tests where every value is 0 or 1.

    Averages over sizes or seeds are no yes or no; those pairs get ``mean_effects``.
    """
    known = [_known(pair) for pair in pairs]
    yes_or_no = [bool(np.isin(pair, (0.0, 1.0)).all()) for pair in known]
    averaged = iter(mean_effects([pair for pair, plain in zip(known, yes_or_no, strict=True) if not plain], resamples))
    return [_mcnemar_effect(pair) if plain else next(averaged) for pair, plain in zip(known, yes_or_no, strict=True)]


def mcnemar(only_first: int, only_second: int) -> float:
    """P value of McNemar's exact test: tasks solved by one alone fall to either side with equal chance.

    Args:
        only_first: tasks that the first method alone solved.
        only_second: tasks that the second method alone solved.
    """
    from statsmodels.stats.contingency_tables import mcnemar as test

    return float(test([[0, only_first], [only_second, 0]], exact=True).pvalue)


def sign_flip(differences: NDArray[np.float64]) -> NDArray[np.float64]:
    """Two-sided p values of the sign-flip permutation test: float64 [pairs] from float64 [pairs, tasks].

    Exact where all differences but zeros are of one size, and for up to 16 tasks. With random patterns the observed
    one counts as one of them, so that a p value is never too small by chance alone (Phipson and Smyth, 2010).
    """
    p_values = np.empty(len(differences))
    of_one_size = np.array([len(np.unique(np.abs(row[row != 0]))) <= 1 for row in differences], dtype=bool)
    for number in np.flatnonzero(of_one_size):
        row = differences[number]
        p_values[number] = mcnemar(int((row < 0).sum()), int((row > 0).sum()))
    p_values[~of_one_size] = _flipped(differences[~of_one_size])
    return p_values


def _flipped(differences: NDArray[np.float64]) -> NDArray[np.float64]:
    tasks = differences.shape[1]
    exact = 2**tasks <= FLIPS
    reached = np.zeros(len(differences))
    observed = np.abs(differences.sum(axis=1)) * _TIE
    with one_thread():
        for negative in _all_patterns(tasks) if exact else _random_patterns(tasks):
            signs = 1.0 - 2.0 * negative.T
            for start in range(0, len(differences), _COLUMNS):
                some = slice(start, start + _COLUMNS)
                sums = np.abs(differences[some] @ signs)
                reached[some] += np.count_nonzero(sums >= observed[some, None], axis=1)
    return reached / 2**tasks if exact else (reached + 1) / (FLIPS + 1)


def proportions_interval(only_first: int, only_second: int, tasks: int) -> tuple[float, float]:
    """95 % interval for the second success rate minus the first (Bonett and Price, 2012, adjusted Wald).

    Args:
        only_first: tasks that the first method alone solved.
        only_second: tasks that the second method alone solved.
        tasks: all of them.
    """
    from scipy.stats import norm

    first, second = (only_first + 1) / (tasks + 2), (only_second + 1) / (tasks + 2)
    centre = second - first
    half = norm.isf((1 - CONFIDENCE) / 2) * np.sqrt((first + second - centre**2) / (tasks + 2))
    return max(-1.0, float(centre - half)), min(1.0, float(centre + half))


def _mcnemar_effect(pair: Pair) -> Effect:
    first, second = pair
    if not len(first):
        return Effect(MCNEMAR, 0)
    only_first, only_second = int((first > second).sum()), int((second > first).sum())
    low, high = proportions_interval(only_first, only_second, len(first))
    return _effect(MCNEMAR, pair, low, high, mcnemar(only_first, only_second))


def _effect(test: str, pair: Pair, low: float | None, high: float | None, p: float) -> Effect:
    first, second = pair
    difference = second - first
    return Effect(
        test=test,
        tasks=len(first),
        first_mean=float(first.mean()),
        second_mean=float(second.mean()),
        difference=float(difference.mean()),
        low=low,
        high=high,
        p=p,
        mean_square=float((difference**2).mean()),
    )


def _known(pair: Pair) -> Pair:
    first, second = pair
    both = ~(np.isnan(first) | np.isnan(second))
    return first[both], second[both]


def _of_one_length(pairs: Sequence[Pair]) -> Iterable[list[int]]:
    """Numbers of pairs, together where they have the same count of tasks; those without any task are left out."""
    groups: dict[int, list[int]] = defaultdict(list)
    for number, (first, _) in enumerate(pairs):
        if len(first):
            groups[len(first)].append(number)
    return groups.values()


def _all_patterns(tasks: int) -> Iterator[NDArray[np.uint8]]:
    """Every choice of tasks whose sign is turned, in blocks of [patterns, tasks] with 1 for the chosen."""
    for start in range(0, 2**tasks, _BATCH):
        numbers = np.arange(start, min(start + _BATCH, 2**tasks))[:, None]
        yield (numbers >> np.arange(tasks) & 1).astype(np.uint8)


def _random_patterns(tasks: int) -> Iterator[NDArray[np.uint8]]:
    """``FLIPS`` seeded choices, in blocks like those of ``_all_patterns``."""
    for packed in _packed_patterns(math.ceil(tasks / 8)):
        yield np.unpackbits(packed, axis=1, count=tasks)


@lru_cache(maxsize=8)
def _packed_patterns(width: int) -> tuple[NDArray[np.uint8], ...]:
    rng = np.random.default_rng(0)
    sizes = [min(_BATCH, FLIPS - start) for start in range(0, FLIPS, _BATCH)]
    return tuple(rng.integers(0, 256, (size, width), dtype=np.uint8) for size in sizes)
