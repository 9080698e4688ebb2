"""Types of cold-start edges without a model: by both views' similarities. These rules are the project's own."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from skillarena.selectors.skilldag.candidates import Pairs
from skillarena.selectors.skilldag.labels import Label
from skillarena.selectors.skilldag.views import DistinctVectors

VERSION = "rules/1"
"""Raise the number with every change of a rule."""
_CLOSE = 0.75
"""Similarity above which two skills may do the same."""
_CLOSEST = 3
"""Each must be among so many nearest of the other."""
_BROADER = 0.05
"""Difference of mean similarity to all skills from which on one is broader than the other."""
_NEEDED = 0.4
"""Similarity of a need and the skill that meets it, at least."""
_ONE_SIDED = 0.1
"""By how much it must exceed that of the opposite direction."""


def label_by_rules(
    selves: DistinctVectors, alike: Pairs, needs: DistinctVectors, needing: NDArray[np.intp], fulfilling: Pairs
) -> list[Label]:
    """Edges, the most certain first; at most one for a pair.

    * ``depends_on``: the target is the best match of what the source needs, and not so the other way round.
    * otherwise, for two skills that are close to each other and among each other's nearest: ``specializes`` when the
      target is the broader one (on average nearer to the whole library), else ``similar_to``.

    Args:
        selves: a vector of each skill's own text.
        alike: candidates by these, each skill's best first.
        needs: a vector of the needs of each skill in ``needing``.
        needing: skills that need something.
        fulfilling: candidates by needs, each skill's best first.
    """
    dependent = list(_dependencies(selves, needs, needing, fulfilling))
    taken = {frozenset(label.pair) for label in dependent}
    related = [label for label in _relatives(selves, alike) if frozenset(label.pair) not in taken]
    return sorted([*dependent, *related], key=lambda label: (-label.certainty, label.pair))


def _dependencies(
    selves: DistinctVectors, needs: DistinctVectors, needing: NDArray[np.intp], fulfilling: Pairs
) -> Iterator[Label]:
    best = fulfilling[_rank(fulfilling) == 0]
    place = np.full(len(selves.row), -1)
    place[needing] = np.arange(len(needing))
    met = _need_met(best, place, selves, needs)
    other_way = _need_met(best[:, ::-1], place, selves, needs)
    for (source, target), cosine, opposite in zip(best.tolist(), met.tolist(), other_way.tolist(), strict=True):
        if cosine >= _NEEDED and cosine - opposite >= _ONE_SIDED:
            yield Label(
                source, target, "depends_on", f"best meets what the source needs first (cosine {cosine:.2f})", cosine
            )


def _need_met(
    pairs: Pairs, place: NDArray[np.intp], selves: DistinctVectors, needs: DistinctVectors
) -> NDArray[np.float64]:
    """How well the second skill of each pair meets the needs of the first; 0 where that one needs nothing."""
    met = np.zeros(len(pairs))
    having = np.flatnonzero(place[pairs[:, 0]] >= 0)
    if len(having):
        first, second = pairs[having].T
        met[having] = np.einsum("ij,ij->i", needs.of(place[first]), selves.of(second))
    return met


def _relatives(selves: DistinctVectors, alike: Pairs) -> Iterator[Label]:
    size = len(selves.row)
    nearest = alike[_rank(alike) < _CLOSEST]
    codes = nearest[:, 0] * size + nearest[:, 1]
    mutual = nearest[np.isin(codes, nearest[:, 1] * size + nearest[:, 0]) & (nearest[:, 0] < nearest[:, 1])]
    cosines = np.einsum("ij,ij->i", selves.of(mutual[:, 0]), selves.of(mutual[:, 1]))
    breadth = selves.vectors @ selves.vectors[selves.row].mean(axis=0)
    gaps = breadth[selves.row[mutual[:, 1]]] - breadth[selves.row[mutual[:, 0]]]
    for (one, other), cosine, gap in zip(mutual.tolist(), cosines.tolist(), gaps.tolist(), strict=True):
        if cosine <= _CLOSE:
            continue
        if abs(gap) < _BROADER:
            yield Label(
                one, other, "similar_to", f"each is among the nearest of the other (cosine {cosine:.2f})", cosine
            )
        else:
            source, target = (one, other) if gap > 0 else (other, one)
            yield Label(source, target, "specializes", f"near to a broader skill (cosine {cosine:.2f})", cosine)


def _rank(pairs: Pairs) -> NDArray[np.intp]:
    """The place of each pair among those of its first skill, from 0."""
    starts = np.flatnonzero(np.r_[True, pairs[1:, 0] != pairs[:-1, 0]]) if len(pairs) else np.empty(0, dtype=np.intp)
    return np.arange(len(pairs)) - np.repeat(starts, np.diff(np.r_[starts, len(pairs)]))
