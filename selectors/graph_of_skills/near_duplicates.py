"""Pairs of skills whose embeddings nearly agree (fast-graphrag 0.0.5, as the released code inserts its nodes)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skillarena.selectors.nearest import nearest

_NEIGHBOURS = 3
_MIN_SIMILARITY = 0.9
"""Of (1 + cosine) / 2."""
_BLOCK = 512
"""Nodes compared with all others at a time."""


def near_duplicates(vectors: NDArray[np.float32]) -> NDArray[np.int32]:
    """int32[pairs, 2]: pairs (i, j) with i < j where j is one of the three nodes nearest to i, i itself included.

    Exact; of equally near nodes the lower comes first. Time grows with the square of the number of nodes, in matrix
    products only; memory does not.

    Args:
        vectors: float32[nodes, d], rows of unit length.
    """
    pairs = [np.empty((0, 2), dtype=np.int32)]
    for start in range(0, len(vectors), _BLOCK):
        found, cosines = nearest(vectors, vectors[start : start + _BLOCK], min(_NEIGHBOURS, len(vectors)))
        own = np.arange(start, start + len(found))[:, None]
        row, place = np.nonzero(((1 + cosines) / 2 >= _MIN_SIMILARITY) & (found > own))
        pairs.append(np.column_stack((row + start, found[row, place])).astype(np.int32))
    whole = np.concatenate(pairs)
    return np.asarray(whole[np.lexsort((whole[:, 1], whole[:, 0]))])
