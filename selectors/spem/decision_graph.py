"""The graph of one decision: the task, what is going on, and the candidate skills, with typed edges (SPEM paper)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skillarena.selectors.spem.links import Links
from skillarena.selectors.spem.statistics import FEATURES

Matrix = NDArray[np.float32]

RELATIONS = (
    "self",
    "task to skill",
    "skill to task",
    "context to skill",
    "skill to context",
    "related skill",
    "shared tools",
    "shared tags",
    "gives what it takes",
    "takes what it gives",
    "comes before",
    "comes after",
)
"""Kinds of edges, by who sends to whom. Messages go both ways, and each direction has weights of its own; the edge of a
node to itself keeps what it is (ours)."""
LEAST_SIMILARITY = 0.5
"""Cosine from which two skills count as related (ours)."""
TASK = 0
"""Position of the task node; nodes of what is going on and candidates follow."""
CONTEXTS = 2
"""Nodes of what is going on: the present state, and the latest actions. Before an episode both lack edges."""
FIRST = TASK + 1 + CONTEXTS
"""Position of the first candidate."""
_LEAST_WEIGHT = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class DecisionGraph:
    """What the network reads. n nodes: one task, ``CONTEXTS`` of what is going on, and k candidates."""

    features: Matrix
    """float32[n, d + FEATURES]: text embedding and statistics (0 for nodes that are no skills)."""
    weights: Matrix
    """float32[R, n, n]: alpha^r_ij, what node i takes of node j's message. Rows add up to 1, or to 0 where i has no
    neighbour of relation r."""
    similarity: Matrix
    """float32[k]: cosine of task and candidate."""


def build_decision_graph(
    task: Matrix, contexts: list[Matrix], skills: Matrix, statistics: Matrix, links: Links
) -> DecisionGraph:
    """Nodes, edges and their normalised weights.

    Args:
        task: float32[d], embedding of the instruction.
        contexts: embeddings of the present state and of the latest actions; none before an episode.
        skills: float32[k, d], embeddings of the candidates.
        statistics: float32[k, FEATURES].
        links: what ties the candidates to each other.
    """
    size, present = FIRST + len(skills), range(TASK + 1, TASK + 1 + len(contexts))
    features = np.zeros((size, len(task) + FEATURES), dtype=np.float32)
    features[TASK, : len(task)] = task
    for node, vector in zip(present, contexts, strict=True):
        features[node, : len(task)] = vector
    features[FIRST:, : len(task)] = skills
    features[FIRST:, len(task) :] = statistics

    similarity = skills @ task
    related = skills @ skills.T
    np.fill_diagonal(related, 0.0)
    raw = np.zeros((len(RELATIONS), size, size), dtype=np.float32)
    to = {relation: raw[index] for index, relation in enumerate(RELATIONS)}
    to["self"][range(size), range(size)] = 1.0
    to["task to skill"][FIRST:, TASK] = to["skill to task"][TASK, FIRST:] = _positive(similarity)
    for node, vector in zip(present, contexts, strict=True):
        to["context to skill"][FIRST:, node] = to["skill to context"][node, FIRST:] = _positive(skills @ vector)
    between = {
        "related skill": np.where(related >= LEAST_SIMILARITY, related, 0.0),
        "shared tools": links.tools,
        "shared tags": links.tags,
        "gives what it takes": links.schema.T,
        "takes what it gives": links.schema,
        "comes before": links.known.T,
        "comes after": links.known,
    }
    for relation, weights in between.items():
        to[relation][FIRST:, FIRST:] = weights
    return DecisionGraph(features, normalised(raw), similarity)


def normalised(raw: Matrix) -> Matrix:
    """Weights of which each row adds up to 1; rows without an edge stay 0."""
    sums = raw.sum(axis=-1, keepdims=True)
    divided: Matrix = raw / np.where(sums > 0, sums, np.float32(1))
    return divided


def _positive(similarity: Matrix) -> Matrix:
    """An edge is there however dissimilar its ends are."""
    return np.maximum(similarity, np.float32(_LEAST_WEIGHT))
