"""Pairs of skills whose embeddings nearly agree (fast-graphrag 0.0.5, as the released code inserts its nodes)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_NEIGHBOURS = 3
_MIN_SIMILARITY = 0.9
"""Of (1 + cosine) / 2."""
_BLOCK = 512
"""Rows of the similarity matrix in memory at once: 512 x 67,884 float32 are 139 MB."""


def near_duplicates(vectors: NDArray[np.float32]) -> NDArray[np.int32]:
    """int32[pairs, 2]: pairs (i, j) with i < j where j is one of the three nodes nearest to i, i itself included.

    Exact: a block of rows is multiplied with all, and the three largest of a row are taken one after the other, of
    equal ones the lower node first. Time grows with the square of the number of nodes, in matrix products only;
    memory does not.

    Args:
        vectors: float32[nodes, d], rows of unit length.
    """
    pairs = [np.empty((0, 2), dtype=np.int32)]
    for start in range(0, len(vectors), _BLOCK):
        similarity = vectors[start : start + _BLOCK] @ vectors.T
        rows = np.arange(len(similarity))
        for _ in range(min(_NEIGHBOURS, len(vectors))):
            nearest = similarity.argmax(axis=1)
            alike = (1 + similarity[rows, nearest]) / 2 >= _MIN_SIMILARITY
            later = nearest > rows + start
            kept = rows[alike & later]
            pairs.append(np.column_stack((kept + start, nearest[kept])).astype(np.int32))
            similarity[rows, nearest] = -np.inf
    found = np.concatenate(pairs)
    return np.asarray(found[np.lexsort((found[:, 1], found[:, 0]))])
