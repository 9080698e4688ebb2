"""The typed skill graph and its invariants, without I/O (arXiv 2606.03056, section 3).

Two directed types form the backbone: ``depends_on`` (the source needs the target first) and ``specializes`` (the source
is the narrower of the two). Together they have no cycle. The other types are symmetric. Between two skills there is
either an exclusion (``conflicts_with``) or any number of positive types, never both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from graphlib import CycleError, TopologicalSorter

from skillarena.selectors.skilldag.edges import (
    BACKBONE,
    EDGE_TYPES,
    EXCLUDES,
    Change,
    Edge,
    GraphError,
    Key,
    clean_reason,
    make_edge,
    unknown_skill,
)


class SkillGraph:
    """Edges between the skills of a library, indexed by skill.

    Forks share what they have in common, so one costs little whatever the size of the graph.

    Args:
        nodes: ids of all skills.
        edges: what is there from the start.

    Raises:
        GraphError: the edges break an invariant.
    """

    def __init__(self, nodes: Collection[str], edges: Iterable[Edge] = ()) -> None:
        self._nodes = nodes
        self._frozen = False
        # The inner dictionaries are shared by forks and are replaced, never changed.
        self._touching: dict[str, dict[Key, Edge]] = defaultdict(dict)
        for edge in edges:
            self._check_ends(edge.source, edge.target, edge.type)
            self._check_absent(edge)
            for end in edge.ends:
                self._touching[end][edge.key] = edge
        self._touching = dict(self._touching)
        self._check_whole()

    @property
    def edges(self) -> list[Edge]:
        """All edges, by type, source and target."""
        return sorted(
            (edge for end, touching in self._touching.items() for edge in touching.values() if edge.source == end),
            key=lambda edge: (EDGE_TYPES.index(edge.type), edge.source, edge.target),
        )

    def touching(self, skill: str) -> list[Edge]:
        """The edges of a skill, by type, then (of directed types) outgoing before incoming, then by the other end."""
        return sorted(
            self._touching.get(skill, {}).values(),
            key=lambda edge: (
                EDGE_TYPES.index(edge.type),
                edge.type in BACKBONE and edge.target == skill,
                edge.other(skill),
            ),
        )

    def between(self, one: str, other: str) -> list[Edge]:
        """The edges of an unordered pair, by type."""
        return [edge for edge in self.touching(one) if edge.other(one) == other]

    def conflicts(self, skill: str) -> list[str]:
        """The skills not to be used together with this one, by id."""
        return [edge.other(skill) for edge in self.touching(skill) if edge.type == EXCLUDES]

    def addition(self, source: str, target: str, edge_type: str, reason: str) -> Change:
        """The change that adds an edge. Raises ``GraphError`` for a reason, skill or type that makes no sense."""
        reason = clean_reason(reason)
        self._check_ends(source, target, edge_type)
        return Change(added=(make_edge(source, target, edge_type, reason),))

    def removal(self, source: str, target: str, edge_type: str, reason: str) -> Change:
        """The change that removes an edge. Raises ``GraphError`` as ``addition``, and when there is no such edge."""
        clean_reason(reason)
        self._check_ends(source, target, edge_type)
        return Change(removed=(self._present(make_edge(source, target, edge_type, "")),))

    def retyping(self, source: str, target: str, from_type: str, to_type: str, reason: str) -> Change:
        """The change that gives an edge another type. Raises ``GraphError`` as ``removal``, and for equal types."""
        reason = clean_reason(reason)
        self._check_ends(source, target, from_type)
        self._check_ends(source, target, to_type)
        if from_type == to_type:
            raise GraphError("INVALID_EDGE_TYPE", f"the edge has the type {to_type} already; name another in `type`")
        old = self._present(make_edge(source, target, from_type, ""))
        return Change(removed=(old,), added=(make_edge(source, target, to_type, reason),))

    def apply(self, change: Change) -> None:
        """Carry out a change, wholly or not at all.

        What is removed must be there exactly as it is given, or it has been changed since. Of an edge that is added
        it is checked that it is new, closes no cycle and contradicts none on its pair, in this order.

        Raises:
            GraphError: the graph is frozen, or one of these is not so.
        """
        if self._frozen:
            raise GraphError("FROZEN", "the graph is frozen; it can be read but not edited")
        ends = {end for pair in change.pairs for end in pair}
        before = {end: self._touching.get(end, {}) for end in ends}
        try:
            for edge in change.removed:
                self._remove(edge)
            for edge in change.added:
                self._add(edge)
        except GraphError:
            self._touching.update(before)
            raise

    def fork(self) -> SkillGraph:
        """A graph of its own with the same edges; frozen when this one is."""
        other = SkillGraph(self._nodes)
        other._touching = self._touching.copy()
        other._frozen = self._frozen
        return other

    def freeze(self) -> None:
        """Refuse every change from now on."""
        self._frozen = True

    def _remove(self, edge: Edge) -> None:
        if self._present(edge) != edge:
            raise GraphError("EDGE_CHANGED", f"{edge} has been made anew since, for another reason")
        for end in edge.ends:
            self._touching[end] = {key: kept for key, kept in self._touching[end].items() if key != edge.key}

    def _add(self, edge: Edge) -> None:
        self._check_absent(edge)
        if edge.type in BACKBONE:
            path = self._path(edge.target, edge.source)
            if path:
                raise GraphError("WOULD_CREATE_CYCLE", f"{edge} would close a cycle: {_chain((edge, *path))}")
        for other in self.between(*edge.ends):
            if (other.type == EXCLUDES) != (edge.type == EXCLUDES):
                raise _contradiction(edge, other)
        for end in edge.ends:
            self._touching[end] = {**self._touching.get(end, {}), edge.key: edge}

    def _path(self, start: str, goal: str) -> list[Edge]:
        """Backbone edges that lead from one skill to another, few of them; none when they do not."""
        reached: dict[str, Edge | None] = {start: None}
        level = [start]
        while level and goal not in reached:
            following: list[str] = []
            for skill in level:
                for edge in self.touching(skill):
                    if edge.type in BACKBONE and edge.source == skill and edge.target not in reached:
                        reached[edge.target] = edge
                        following.append(edge.target)
            level = following
        path: list[Edge] = []
        last = reached.get(goal)
        while last is not None:
            path.append(last)
            last = reached[last.source]
        return path[::-1]

    def _present(self, edge: Edge) -> Edge:
        """The edge of the same key."""
        found = self._touching.get(edge.source, {}).get(edge.key)
        if found is None:
            raise GraphError("EDGE_NOT_FOUND", f"there is no edge {edge}")
        return found

    def _check_absent(self, edge: Edge) -> None:
        if edge.key in self._touching.get(edge.source, {}):
            raise GraphError("EDGE_ALREADY_EXISTS", f"there is an edge {edge} already")

    def _check_ends(self, source: str, target: str, edge_type: str) -> None:
        for skill in (source, target):
            if skill not in self._nodes:
                raise unknown_skill(skill)
        if edge_type not in EDGE_TYPES:
            raise GraphError("INVALID_EDGE_TYPE", f"{edge_type!r} is no type; there are: {', '.join(EDGE_TYPES)}")
        if source == target:
            raise GraphError("SELF_LOOP_NOT_ALLOWED", f"an edge joins two skills, and {source} is one")

    def _check_whole(self) -> None:
        """Both invariants over all edges, in linear time."""
        backbone: dict[str, list[str]] = {}
        for skill, touching in self._touching.items():
            exclusions = {edge.other(skill): edge for edge in touching.values() if edge.type == EXCLUDES}
            for edge in touching.values():
                if edge.type != EXCLUDES and edge.other(skill) in exclusions:
                    raise _contradiction(edge, exclusions[edge.other(skill)])
            backbone[skill] = [e.target for e in touching.values() if e.type in BACKBONE and e.source == skill]
        try:
            TopologicalSorter(backbone).prepare()
        except CycleError as error:
            raise GraphError("WOULD_CREATE_CYCLE", f"there is a cycle: {' -> '.join(error.args[1][::-1])}") from None


def _contradiction(edge: Edge, other: Edge) -> GraphError:
    return GraphError(
        "CONTRADICTORY_EDGE",
        f"{edge} contradicts {other} ({other.reason}); remove or retype that one if it is wrong",
    )


def _chain(path: Iterable[Edge]) -> str:
    edges = list(path)
    return "".join(f"{edge.source} {edge.type} " for edge in edges) + edges[-1].target
