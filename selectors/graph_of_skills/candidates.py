"""Which skills may be linked with a skill, best first (released code, link candidates)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skillarena.selectors.graph_of_skills.fields import Node
from skillarena.selectors.graph_of_skills.io_match import WEAK
from skillarena.selectors.graph_of_skills.lexicon import Group, Lexicon, grouped
from skillarena.selectors.graph_of_skills.query import Query
from skillarena.selectors.graph_of_skills.rerank import rank_bonus
from skillarena.selectors.graph_of_skills.tokens import signature
from skillarena.selectors.recall import Recall

MOST_CANDIDATES = 32
_LEAST_SHARED = 0.5
_IO_WEIGHT = 0.85
_OVERLAP_WEIGHTS: tuple[tuple[Group, float], ...] = (
    ("name", 1.05),
    ("about", 0.8),
    ("tags", 1.0),
    ("tooling", 0.85),
    ("io", 0.55),
    ("examples", 0.7),
)
_SHARED_WEIGHTS: tuple[tuple[Group, float], ...] = (
    ("tags", 1.0),
    ("tooling", 0.75),
    ("examples", 0.6),
    ("io", 0.4),
)


class LinkCandidates:
    """Candidates of one node at a time, compared with all nodes in a few array operations.

    Args:
        nodes: all nodes.
        lexicon: their tokens.
        matches: scipy CSR of ``io_scores``.
        recall: finds nodes by their embedded text.
    """

    def __init__(self, nodes: Sequence[Node], lexicon: Lexicon, matches: Any, recall: Recall) -> None:
        self._nodes = nodes
        self._lexicon = lexicon
        self._outgoing = matches
        self._incoming = matches.T.tocsr()
        self._recall = recall

    def ranked(self, index: int) -> list[int]:
        """At most 32 nodes, best first. Raises ``RerankerError``.

        A candidate has to share at least half of one field's tokens, or to give or take something that this node takes
        or gives: however near its text is, without that it is none.
        """
        pair, evident = self._pair_features(index)
        evident[index] = False
        if not evident.any():
            return []
        query = Query.of_node(self._nodes[index])
        by_words = self._overlap(query) + pair
        scores: dict[int, float] = {}
        nearest = self._recall.top(query.embedded, min(MOST_CANDIDATES, len(self._nodes)))
        for rank, (node, _) in enumerate(nearest, start=1):
            if evident[node]:
                scores[node] = float(by_words[node]) + 1 / rank + rank_bonus(rank)
        others = np.flatnonzero(evident)
        for node in others[np.argsort(-by_words[others], kind="stable")[:MOST_CANDIDATES]]:
            scores.setdefault(int(node), float(by_words[node]))
        return sorted(scores, key=lambda node: -scores[node])[:MOST_CANDIDATES]

    def _overlap(self, query: Query) -> NDArray[np.float64]:
        """float64[nodes]: weighted shares of the query's tokens."""
        tokens = query.tokens
        shares = np.zeros(len(self._nodes))
        for group, weight in _OVERLAP_WEIGHTS:
            shares += weight * (self._lexicon.counts(group, tokens) / max(len(tokens), 1))
        return shares

    def _pair_features(self, index: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """What a node has in common with each, float64[nodes], and whether that speaks for a link, bool[nodes]."""
        fields = grouped(self._nodes[index])
        io = self._io(index)
        score, evident = _IO_WEIGHT * io, io > 0
        for group, weight in _SHARED_WEIGHTS:
            shared = self._lexicon.shared(group, fields[group])
            enough = shared >= _LEAST_SHARED
            score += weight * np.where(enough, shared, 0)
            evident |= enough
        return score, evident

    def _io(self, index: int) -> NDArray[np.float64]:
        """float64[nodes]: how well inputs and outputs match, in the better direction; 0 where they do not."""
        node = self._nodes[index]
        takes = self._lexicon.counts("inputs", signature(node.outputs))
        gives = self._lexicon.counts("outputs", signature(node.inputs))
        io = np.where(takes + gives > 0, WEAK, 0.0)
        for matches in (self._outgoing, self._incoming):
            row = slice(matches.indptr[index], matches.indptr[index + 1])
            np.maximum.at(io, matches.indices[row], matches.data[row])
        return io
