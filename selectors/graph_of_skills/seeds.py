"""Where the walk starts: the best of what is near in meaning and what shares words (released code, seeding)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skillarena.selectors.graph_of_skills.rerank import rank_bonus

_POOL = 20
_PER_SEED = 4
_LEXICAL_RANK_WEIGHT = 0.15
_BOTH = 0.1
_NO_RANK = 10**9


@dataclass(frozen=True, slots=True)
class Seed:
    """A node to start from."""

    node: int
    weight: float
    """Share of the restarts, all seeds summing up to 1."""
    score: float
    semantic_rank: int | None
    """Rank by similarity of embeddings, from 1; None below the pool."""
    lexical_rank: int | None
    """Rank by shared words, from 1; None below the pool."""


def semantic_pool(seeds: int) -> int:
    """How many nearest nodes compete for that many seeds."""
    return max(_POOL, _PER_SEED * seeds)


def lexical_pool(overlap: NDArray[np.float64], base: NDArray[np.float64], seeds: int) -> list[int]:
    """Nodes that share words with the query, best first, ties in order of nodes.

    Args:
        overlap: float64[nodes], share of the query's tokens anywhere in a node.
        base: float64[nodes], R without graph and rank.
        seeds: how many are wanted in the end.
    """
    sharing = np.flatnonzero(overlap)
    order = np.argsort(-(overlap + base)[sharing], kind="stable")
    return [int(node) for node in sharing[order[: max(_POOL, seeds)]]]


def choose_seeds(semantic: Sequence[int], lexical: Sequence[int], base: NDArray[np.float64], seeds: int) -> list[Seed]:
    """The best of both pools, best first, with weights that fall as 1/rank.

    Ties: semantic before lexical ones, then smaller semantic rank, then smaller lexical rank.
    """
    by_meaning = {node: rank for rank, node in enumerate(semantic, start=1)}
    by_words = {node: rank for rank, node in enumerate(lexical, start=1)}
    scored = []
    for node in {**by_meaning, **by_words}:
        near, shared = by_meaning.get(node), by_words.get(node)
        score = float(base[node]) + (1 / near if near else 0.0) + rank_bonus(near)
        score += _LEXICAL_RANK_WEIGHT / shared if shared else 0.0
        score += _BOTH if near and shared else 0.0
        scored.append((-score, near or _NO_RANK, shared or _NO_RANK, node))
    best = sorted(scored)[:seeds]
    total = sum(1 / rank for rank in range(1, len(best) + 1))
    return [
        Seed(node, 1 / rank / total, -negative, by_meaning.get(node), by_words.get(node))
        for rank, (negative, _, _, node) in enumerate(best, start=1)
    ]
