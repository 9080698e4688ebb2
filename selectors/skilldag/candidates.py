"""Pairs of skills worth a look: for each skill and view those that stand out of its row of similarities."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from skillarena.selectors.nearest import greatest
from skillarena.selectors.skilldag.views import DistinctVectors

_LOWEST, _HIGHEST = 0.35, 0.75
_DEVIATIONS = 1.0
_MOST, _LEAST = 12, 3
_BLOCK_CELLS = 1 << 23
"""Similarities in memory at once."""

Pairs = NDArray[np.intp]
"""intp[n, 2] of indices of skills."""


def choose_candidates(anchors: NDArray[np.intp], views: DistinctVectors, selves: DistinctVectors) -> Pairs:
    """The candidates of each anchor under one view (arXiv 2606.03056, section 3.2; exact values as released).

    A candidate is nearer than mean + standard deviation (population) of the anchor's similarities to all other skills,
    that limit kept within 0.35 and 0.75; the best 12 are taken, and the best 3 even if none is near enough. Of equal
    ones the earlier skill comes first.

    Args:
        anchors: the skills that look for candidates.
        views: one text for each anchor.
        selves: one text for each skill; what candidates are found by.

    Returns:
        (anchor, candidate), by anchor and then best first.
    """
    chosen = [np.empty((0, 2), dtype=np.intp)]
    if len(selves.row) > 1:
        chosen += _by_blocks(anchors, views, selves)
    return np.concatenate(chosen)


def _by_blocks(anchors: NDArray[np.intp], views: DistinctVectors, selves: DistinctVectors) -> Iterator[Pairs]:
    size = len(selves.row)
    step = max(1, _BLOCK_CELLS // size)
    for at in range(0, len(anchors), step):
        some = anchors[at : at + step]
        distinct = views.of(np.arange(at, at + len(some))) @ selves.vectors.T
        cosines = distinct[:, selves.row]
        ranks = np.arange(len(some))
        others = np.float64(size - 1)
        own = cosines[ranks, some].astype(np.float64)
        mean = (cosines.sum(axis=1, dtype=np.float64) - own) / others
        deviations = cosines - mean[:, None].astype(np.float32)
        square = np.einsum("ij,ij->i", deviations, deviations, dtype=np.float64) - (own - mean) ** 2
        limit = np.clip(mean + _DEVIATIONS * np.sqrt(np.maximum(square / others, 0)), _LOWEST, _HIGHEST)
        cosines[ranks, some] = -np.inf
        best = greatest(cosines, min(_MOST, size - 1))
        above = (np.take_along_axis(cosines, best, axis=1) > limit[:, None]).sum(axis=1)
        kept = np.arange(best.shape[1]) < np.maximum(above, _LEAST)[:, None]
        yield np.stack([np.repeat(some, kept.sum(axis=1)), best[kept]], axis=1)
