"""How good one ranking is, against what a query needs: the formulas of SkillRouter's evaluation (arXiv 2603.22455).

A ranking is a sequence of skill ids, best first, without repeats. Every formula gives 0 to 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass

Ranking = Sequence[str]


@dataclass(frozen=True, slots=True)
class Truth:
    """What a query needs, out of the pool that was searched."""

    needed: Set[str]
    """Skills that have to be found; alike in rank."""
    grades: Mapping[str, float]
    """Gain of every skill that is worth something, the needed ones and others; any other skill gains 0."""


def dcg(gains: Sequence[float], k: int) -> float:
    """Discounted cumulative gain: the first ``k`` gains as they are, each divided by log2(rank + 1)."""
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains[:k], start=1))


def ndcg(ranking: Ranking, truth: Truth, k: int) -> float:
    """DCG as a share of that of the best ranking possible, which holds all graded skills; 0 where nothing gains."""
    ideal = dcg(sorted(truth.grades.values(), reverse=True), k)
    return dcg([truth.grades.get(skill, 0.0) for skill in ranking[:k]], k) / ideal if ideal > 0 else 0.0


def hit(ranking: Ranking, truth: Truth, k: int) -> float:
    """1 when a needed skill is among the first ``k``."""
    return float(any(skill in truth.needed for skill in ranking[:k]))


def reciprocal_rank(ranking: Ranking, truth: Truth, k: int) -> float:
    """1 / rank of the first needed skill, 0 when it is not among the first ``k``."""
    return next((1 / rank for rank, skill in enumerate(ranking[:k], start=1) if skill in truth.needed), 0.0)


def precision(ranking: Ranking, truth: Truth, k: int) -> float:
    """Needed skills among the first ``k``, divided by ``k`` even where fewer are needed."""
    return sum(skill in truth.needed for skill in ranking[:k]) / k


def recall(ranking: Ranking, truth: Truth, k: int) -> float:
    """Share of the needed skills that is among the first ``k``; 0 where none is needed."""
    return len(truth.needed & set(ranking[:k])) / len(truth.needed) if truth.needed else 0.0


def full_coverage(ranking: Ranking, truth: Truth, k: int) -> float:
    """1 when every needed skill is among the first ``k``; so also where none is needed."""
    return float(truth.needed <= set(ranking[:k]))


_FORMULAS: tuple[tuple[str, Callable[[Ranking, Truth, int], float], tuple[int, ...]], ...] = (
    ("Hit", hit, (1,)),
    ("MRR", reciprocal_rank, (10,)),
    ("nDCG", ndcg, (1, 3, 10)),
    ("Precision", precision, (3,)),
    ("Recall", recall, (10, 20, 50)),
    ("FullCoverage", full_coverage, (3, 5, 10)),
)
METRICS = tuple(f"{name}@{k}" for name, _, depths in _FORMULAS for k in depths)
"""Names of what :func:`measure` gives, with the depths of the published evaluation."""


def measure(ranking: Ranking, truth: Truth) -> dict[str, float]:
    """Every metric of one ranking, by the names of ``METRICS``.

    Raises:
        ValueError: a skill is ranked twice, which would make it gain twice.
    """
    if len(set(ranking)) < len(ranking):
        raise ValueError("a skill is ranked twice")
    return {f"{name}@{k}": formula(ranking, truth, k) for name, formula, depths in _FORMULAS for k in depths}
