"""Edges between skills: dependencies by rule, and the relations that a model confirms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from skillarena.selectors.graph_of_skills.edges import Edge
from skillarena.selectors.graph_of_skills.fields import Node
from skillarena.selectors.graph_of_skills.tokens import signature

MIN_MATCH = 0.6
"""Of a dependency by rule (``io_scores``)."""
SHOWN = 8
"""Most candidates that a model is asked about at once."""

Ranked = Callable[[int], list[int]]
"""The link candidates of a node, best first."""


def dependencies(nodes: Sequence[Node], matches: Any, ranked: Ranked) -> list[Edge]:
    """Edges from the node that gives to the node that takes.

    The reference tests a pair when outputs of one share a token with inputs of the other, or when the node that comes
    first has the other among its ranked candidates. Ranks therefore only matter for pairs that match although they
    share no token (one slug contains the other), and only their first nodes are ranked. The result is the same as
    when all are.

    Args:
        nodes: all nodes.
        matches: scipy CSR of ``io_scores``.
        ranked: of ``LinkCandidates``.

    Raises ``RerankerError``.
    """
    found = matches.tocoo()
    good = found.data >= MIN_MATCH
    pairs = list(zip(found.row[good].tolist(), found.col[good].tolist(), found.data[good].tolist(), strict=True))
    involved = {node for source, target, _ in pairs for node in (source, target)}
    gives = {node: signature(nodes[node].outputs) for node in involved}
    takes = {node: signature(nodes[node].inputs) for node in involved}
    kept: dict[int, set[int]] = {}

    def tested(source: int, target: int) -> bool:
        if gives[source] & takes[target] or gives[target] & takes[source]:
            return True
        first, second = sorted((source, target))
        if first not in kept:
            kept[first] = set(ranked(first))
        return second in kept[first]

    return [Edge(source, target, "dependency", score) for source, target, score in pairs if tested(source, target)]


def open_questions(count: int, known: Sequence[Edge], ranked: Ranked) -> list[tuple[int, list[int]]]:
    """What a model is asked: each node with its best candidates that come later and have no dependency by rule.

    A pair is asked about once, with the node that comes first, as in the reference. Raises ``RerankerError``.
    """
    linked = {(min(edge.source, edge.target), max(edge.source, edge.target)) for edge in known}
    questions = []
    for node in range(count):
        others = [other for other in ranked(node) if other > node and (node, other) not in linked]
        if others:
            questions.append((node, others[:SHOWN]))
    return questions
