"""Exact search for the greatest similarities; of equal ones the earlier comes first."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

_BLOCK_CELLS = 1 << 20
"""Similarities in memory at once, more or less."""
_STRETCH = 64


def nearest(
    vectors: NDArray[np.float32], queries: NDArray[np.float32], count: int
) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """The rows of a matrix that have the greatest products with each query.

    One query is answered by one product with the whole matrix (of up to two million rows). More of them share what
    reading the matrix takes, so that each costs a fraction of that.

    Args:
        vectors: float32[n, d], of unit length where products are to be cosines; may be mapped from a file.
        queries: float32[q, d], q >= 1.
        count: rows to find for each, 1 to n.

    Returns:
        intp[q, count] and float32[q, count]: rows and products, greatest first, of equal ones the earlier row.
    """
    blocks = max(1, len(vectors) // max(1, _BLOCK_CELLS // len(queries)))
    ends = np.linspace(0, len(vectors), blocks + 1, dtype=np.intp).tolist()
    found, products = [], []
    for start, end in pairwise(ends):
        block = _products(vectors[start:end], queries)
        best = greatest(block, min(count, end - start))
        found.append(best + start)
        products.append(np.take_along_axis(block, best, axis=1))
    rows, values = np.concatenate(found, axis=1), np.concatenate(products, axis=1)
    if blocks > 1:
        best = greatest(values, count)
        rows, values = np.take_along_axis(rows, best, axis=1), np.take_along_axis(values, best, axis=1)
    return rows, values


def _products(vectors: NDArray[np.float32], queries: NDArray[np.float32]) -> NDArray[np.float32]:
    """float32[q, n]."""
    if len(queries) == 1:
        return np.atleast_2d(vectors @ queries[0])
    return np.ascontiguousarray((vectors @ queries.T).T)  # quicker than queries @ vectors.T


def greatest(values: NDArray[np.float32], count: int) -> NDArray[np.intp]:
    """Columns of the greatest values in each row, greatest first, of equal ones the earlier.

    Args:
        values: float32[rows, n], finite or -inf.
        count: 1 to n.

    Returns:
        intp[rows, count].
    """
    rows, size = values.shape
    # At least `count` stretches of a row reach the `count`-th greatest of their maxima, so few values are left to sort.
    maxima = np.maximum.reduceat(values, np.arange(0, size, min(_STRETCH, size // count)), axis=1)
    reached = np.partition(maxima, -count, axis=1)[:, -count]
    row, column = np.divmod(np.flatnonzero(values >= reached[:, None]), size)
    order = np.lexsort((column, -values[row, column], row))
    starts = np.searchsorted(row, np.arange(rows))
    best: NDArray[np.intp] = column[order][starts[:, None] + np.arange(count)]
    return best
