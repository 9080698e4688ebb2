"""How well each node answers a query: the lexical score that decides seeds and order (released code, R)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from skillarena.selectors.graph_of_skills.lexicon import Group, Lexicon
from skillarena.selectors.graph_of_skills.query import Query
from skillarena.selectors.graph_of_skills.tokens import signature

_TASK_NAME_WEIGHT = 0.35
_WEIGHTS: tuple[tuple[Group, float], ...] = (
    ("name", 1.25),
    ("about", 0.9),
    ("tags", 1.15),
    ("tooling", 0.95),
    ("io", 0.75),
    ("examples", 0.8),
)
_NAMED = 1.2
_RANK_WEIGHT = 0.2


class LexicalScores:
    """R without its graph and rank terms, for all nodes at once.

    Args:
        lexicon: tokens of the nodes.
        names: their names.
    """

    def __init__(self, lexicon: Lexicon, names: Sequence[str]) -> None:
        self._lexicon = lexicon
        self._named: dict[str, list[int]] = defaultdict(list)
        for index, name in enumerate(names):
            if bare := re.sub(r"[^a-z0-9]+", " ", name.lower()).strip():
                self._named[bare].append(index)
        self._name_lengths = sorted({len(name) for name in self._named})

    def of(self, query: Query) -> NDArray[np.float64]:
        """float64[nodes].

        Weighted shares of the query's tokens that a node has in its fields, plus a bonus for a node whose whole name
        the query says. The term for the task's name is the same for all nodes. The terms of the reference for scripts
        and for the domains of a query never apply here: there are no scripts, and an instruction has no domain.
        """
        tokens = query.tokens
        parts = max(len(tokens), 1)
        scores = np.full(self._lexicon.size, _TASK_NAME_WEIGHT * len(signature([query.task_name]) & tokens) / parts)
        for group, weight in _WEIGHTS:
            scores += weight * (self._lexicon.counts(group, tokens) / parts)
        scores[self._said(query)] += _NAMED
        return scores

    def _said(self, query: Query) -> list[int]:
        """Nodes whose name the query says.

        A name has only letters, digits and single spaces, so it lies within one run of these in the query. Looking up
        every piece of a run that is as long as some name finds the same as trying all names, whose number it does not
        depend on.
        """
        runs = set(re.findall(r"[a-z0-9 ]+", "\n".join(query.values).lower()))
        pieces = (
            run[start : start + length]
            for run in runs
            for length in self._name_lengths
            for start in range(len(run) - length + 1)
        )
        return [index for piece in pieces if piece in self._named for index in self._named[piece]]


def rank_bonus(rank: int | None) -> float:
    """The term of R for a node's rank, from 1; None: it has none."""
    return _RANK_WEIGHT / rank if rank else 0.0
