"""Seeded percentile bootstrap of means, for many measures at once.

The resamples of a mean depend on the number of values only, so they are drawn once as counts (how often each value
occurs in each resample); the resampled means of any number of measures are then one matrix product. The draws are
those of ``scipy.stats.bootstrap`` with ``method="percentile"``, ``batch=1000`` and ``rng=np.random.default_rng(seed)``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

CONFIDENCE = 0.95

_BATCH = 1000  # resamples drawn at a time
_KEPT = 2**24  # at most so many counts of one kind stay in memory, of one or two bytes each
_KINDS = 8
_COLUMNS = 32  # measures whose means are in memory at a time


def mean_intervals(values: NDArray[np.float64], resamples: int, seed: int = 0) -> NDArray[np.float64]:
    """95 % percentile-bootstrap intervals of means.

    Args:
        values: float64 [measures, n], n of 1 or more.
        resamples: how many.
        seed: of the draws.

    Returns:
        float64 [measures, 2], lower and upper ends. Equal values give that value twice; a measure with a NaN has NaN.
    """
    lowest, highest = values.min(axis=1), values.max(axis=1)
    intervals = np.stack([lowest, highest], axis=1)
    varying = np.flatnonzero(lowest < highest)  # false for NaN
    for start in range(0, len(varying), _COLUMNS):
        chosen = varying[start : start + _COLUMNS]
        intervals[chosen] = _percentiles(resampled_means(values[chosen], resamples, seed))
    return intervals


def resampled_means(values: NDArray[np.float64], resamples: int, seed: int = 0) -> NDArray[np.float64]:
    """Means of float64 [measures, n] over each resample: float64 [measures, resamples]."""
    means = np.empty((len(values), resamples))
    done = 0
    with one_thread():
        for counts in _counts(values.shape[1], resamples, seed):
            means[:, done : done + len(counts)] = values @ counts.T.astype(np.float64)
            done += len(counts)
    means /= values.shape[1]
    return means


def one_thread() -> AbstractContextManager[object]:
    """Matrix products inside use one thread.

    Sums then do not depend on the number of cores, and on a busy machine these small products are many times quicker
    than with threads that wait for each other.
    """
    limited: AbstractContextManager[object] = _thread_pools().limit(limits=1, user_api="blas")
    return limited


@cache
def _thread_pools() -> ThreadpoolController:
    return ThreadpoolController()


def _percentiles(means: NDArray[np.float64]) -> NDArray[np.float64]:
    tail = (1 - CONFIDENCE) / 2
    ends: NDArray[np.float64] = np.quantile(means, [tail, 1 - tail], axis=1, overwrite_input=True).T
    return ends


def _counts(n: int, resamples: int, seed: int) -> Iterable[NDArray[np.unsignedinteger]]:
    return _kept_counts(n, resamples, seed) if n * resamples <= _KEPT else _drawn_counts(n, resamples, seed)


@lru_cache(maxsize=_KINDS)
def _kept_counts(n: int, resamples: int, seed: int) -> tuple[NDArray[np.unsignedinteger], ...]:
    return tuple(_drawn_counts(n, resamples, seed))


def _drawn_counts(n: int, resamples: int, seed: int) -> Iterator[NDArray[np.unsignedinteger]]:
    """Blocks of [up to 1000, n] whose rows sum to n."""
    rng = np.random.default_rng(seed)
    for start in range(0, resamples, _BATCH):
        rows = min(_BATCH, resamples - start)
        indices = rng.integers(0, n, (rows, n)) + n * np.arange(rows)[:, None]
        counts = np.bincount(indices.ravel(), minlength=rows * n).reshape(rows, n)
        yield counts.astype(np.min_scalar_type(n))
