"""Personalised PageRank over typed, weighted edges (arXiv 2604.05333; constants of the released code)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

RESTART = 0.2
MAX_ITERATIONS = 50
TOLERANCE = 1e-6


def flow(size: int, rows: NDArray[np.int32], columns: NDArray[np.int32], weights: NDArray[np.float64]) -> Any:
    """SciPy CSR float64[size, size] whose columns sum to 1: what part of a column's node goes to each row's node.

    Args:
        size: number of nodes.
        rows: int32[arcs], where arcs start.
        columns: int32[arcs], where they end.
        weights: float64[arcs], 0 or more; those of equal arcs are added.

    A node that no arc leaves keeps what it has: it gets an arc to itself.
    """
    from scipy.sparse import csr_matrix, diags

    arcs = csr_matrix((weights, (rows, columns)), shape=(size, size))
    sums = np.asarray(arcs.sum(axis=1)).ravel()
    shares = diags(1 / np.where(sums > 0, sums, 1.0)) @ arcs + diags((sums <= 0).astype(np.float64))
    return shares.T.tocsr()


def personalised_pagerank(flowing: Any, restart: NDArray[np.float64]) -> NDArray[np.float64]:
    """float64[nodes], summing up to 1: where a walk is that starts anew from ``restart`` with probability 0.2 a step.

    At most 50 steps of power iteration, fewer when the change (L1) falls to 1e-6.

    Args:
        flowing: of :func:`flow`.
        restart: float64[nodes], summing up to 1.
    """
    scores = restart
    for _ in range(MAX_ITERATIONS):
        following = RESTART * restart + (1 - RESTART) * (flowing @ scores)
        change = np.abs(following - scores).sum()
        scores = following
        if change <= TOLERANCE:
            break
    return np.asarray(scores / scores.sum())
