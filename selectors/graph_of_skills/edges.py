"""Typed edges between skills, and the arcs that a walk may take along them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Orientation = Literal["paper", "released"]
ORIENTATIONS = ("paper", "released")
"""``paper``: edges keep their direction. ``released``: the public code stores them without direction and takes the node
that comes first as their source; it also links near-duplicates."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of edge."""

    strength: float
    """Weight of an edge that a model is sure of."""
    backwards: float
    """Weight of the way against an edge, as a share of the way along it."""


KINDS: Mapping[str, Kind] = {
    "dependency": Kind(1.0, 1.0),
    "workflow": Kind(0.7, 0.5),
    "semantic": Kind(0.4, 0.2),
    "alternative": Kind(0.3, 0.1),
}
_NAMES = tuple(KINDS)
_BACKWARDS = np.array([kind.backwards for kind in KINDS.values()])


@dataclass(frozen=True, slots=True)
class Edge:
    """One edge: the source's output is the target's input, or a looser relation."""

    source: int
    target: int
    kind: str
    weight: float


@dataclass(frozen=True, slots=True)
class Edges:
    """Edges as columns."""

    sources: NDArray[np.int32]
    targets: NDArray[np.int32]
    kinds: NDArray[np.int8]
    """Place in ``KINDS``."""
    weights: NDArray[np.float64]

    @classmethod
    def of(cls, edges: Iterable[Edge]) -> Edges:
        """In order of source, target and kind; of equal ones the heaviest."""
        heaviest: dict[tuple[int, int, int], float] = {}
        for edge in edges:
            key = (edge.source, edge.target, _NAMES.index(edge.kind))
            heaviest[key] = max(edge.weight, heaviest.get(key, 0.0))
        keys = np.array(sorted(heaviest), dtype=np.int64).reshape(-1, 3)
        return cls(
            keys[:, 0].astype(np.int32),
            keys[:, 1].astype(np.int32),
            keys[:, 2].astype(np.int8),
            np.array([heaviest[key] for key in sorted(heaviest)], dtype=np.float64),
        )

    def __len__(self) -> int:
        return len(self.sources)

    def by_kind(self) -> dict[str, int]:
        """How many there are of each kind in use."""
        return {_NAMES[kind]: count for kind, count in sorted(Counter(self.kinds.tolist()).items())}

    def oriented(self, orientation: Orientation) -> Edges:
        """The same edges as the walk sees them."""
        if orientation == "paper":
            return self
        ends = np.sort(np.stack((self.sources, self.targets)), axis=0)
        return Edges(ends[0], ends[1], self.kinds, self.weights)

    def among(self, nodes: Iterable[int]) -> list[Edge]:
        """The edges between some nodes, heaviest first."""
        wanted = np.array(sorted(nodes), dtype=np.int32)
        inside = np.flatnonzero(np.isin(self.sources, wanted) & np.isin(self.targets, wanted))
        order = inside[np.argsort(-self.weights[inside], kind="stable")]
        return [
            Edge(int(self.sources[at]), int(self.targets[at]), _NAMES[self.kinds[at]], float(self.weights[at]))
            for at in order
        ]


Arcs = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]
"""Start, end and weight of what a walk may take."""


def arcs(edges: Edges, duplicates: NDArray[np.int32]) -> Arcs:
    """Both ways along each edge.

    Near-duplicates follow the released code: alone in a graph they count like dependencies, both ways with weight 1; as
    soon as there is one typed edge, the way back is closed, since they are then loaded without a type.

    Args:
        edges: typed edges, oriented.
        duplicates: int32[pairs, 2] of near-duplicates, the first node lower.
    """
    first, second = duplicates[:, 0], duplicates[:, 1]
    starts, ends = [edges.sources, edges.targets, first], [edges.targets, edges.sources, second]
    weights = [edges.weights, edges.weights * _BACKWARDS[edges.kinds], np.ones(len(duplicates))]
    if not len(edges):
        starts, ends, weights = [*starts, second], [*ends, first], [*weights, np.ones(len(duplicates))]
    return np.concatenate(starts), np.concatenate(ends), np.concatenate(weights)
