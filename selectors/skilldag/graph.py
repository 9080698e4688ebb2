"""The typed skill graph and its invariants, without I/O (arXiv 2606.03056, section 3).

Two directed types form the backbone: ``depends_on`` (the source needs the target first) and ``specializes`` (the source
is the narrower of the two). Together they have no cycle. The other types are symmetric. Between two skills there is
either an exclusion (``conflicts_with``) or any number of positive types, never both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Any, Self

BACKBONE = ("depends_on", "specializes")
"""Directed types, acyclic together."""
EXCLUDES = "conflicts_with"
EDGE_TYPES = (*BACKBONE, "composes_with", "similar_to", EXCLUDES)
"""All types, in the order in which the edges of a skill are listed."""
REASON_CHARS = 200
"""A reason is cut to this length."""

Key = tuple[str, str, str]
"""Type, source and target: what an edge is unique by."""


class GraphError(Exception):
    """An edit that the graph refuses.

    Args:
        code: one word for programs.
        message: what is wrong, for the agent.
        unknown: the id that is no skill's, if that is what is wrong.
    """

    def __init__(self, code: str, message: str, unknown: str = "") -> None:
        super().__init__(code, message, unknown)
        self.code = code
        self.message = message
        self.unknown = unknown


def unknown_skill(skill_id: str) -> GraphError:
    """The error for an id that is no skill's."""
    return GraphError("SKILL_NOT_FOUND", f"there is no skill {skill_id!r}", skill_id)


@dataclass(frozen=True, slots=True)
class Edge:
    """A relation between two skills; ends of symmetric types are in order of their ids. Use :func:`make_edge`."""

    source: str
    target: str
    type: str
    reason: str
    origin: str = "online"
    """``cold_start`` or ``online``."""

    @property
    def key(self) -> Key:
        """What the edge is unique by."""
        return self.type, self.source, self.target

    @property
    def ends(self) -> tuple[str, str]:
        """Both skills in order of their ids."""
        return min(self.source, self.target), max(self.source, self.target)

    def other(self, skill: str) -> str:
        """The end that is not ``skill``."""
        return self.target if skill == self.source else self.source

    def as_json(self) -> dict[str, str]:
        """All fields."""
        return {
            "source": self.source,
            "target": self.target,
            "type": self.type,
            "reason": self.reason,
            "origin": self.origin,
        }

    @classmethod
    def from_json(cls, fields: dict[str, str]) -> Self:
        """The edge whose ``as_json`` this is. Raises ``TypeError``."""
        return cls(**fields)


def make_edge(source: str, target: str, edge_type: str, reason: str, origin: str = "online") -> Edge:
    """An edge with its ends in stored order."""
    if edge_type not in BACKBONE:
        source, target = sorted((source, target))
    return Edge(source, target, edge_type, reason, origin)


def clean_reason(reason: str) -> str:
    """A reason as it is kept: one line of at most ``REASON_CHARS``. Raises ``GraphError`` when nothing is left."""
    text = " ".join(reason.encode("utf-8", "replace").decode("utf-8").split())
    if not text:
        raise GraphError("INVALID_REASON", "say in `reason` what in this task speaks for the edit")
    return text if len(text) <= REASON_CHARS else text[: REASON_CHARS - 1] + "…"


@dataclass(frozen=True, slots=True)
class Change:
    """What an edit takes out of the graph and puts in, all or nothing."""

    removed: tuple[Edge, ...] = ()
    added: tuple[Edge, ...] = ()

    @property
    def inverse(self) -> Change:
        """What undoes it."""
        return Change(removed=self.added, added=self.removed)

    @property
    def pairs(self) -> set[tuple[str, str]]:
        """The unordered pairs of skills that it concerns."""
        return {edge.ends for edge in (*self.removed, *self.added)}

    def as_json(self) -> dict[str, list[dict[str, str]]]:
        """Full copies of all edges."""
        return {
            "removed": [edge.as_json() for edge in self.removed],
            "added": [edge.as_json() for edge in self.added],
        }

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Self:
        """The change whose ``as_json`` this is. Raises ``KeyError`` or ``TypeError``."""
        removed, added = (tuple(map(Edge.from_json, fields[part])) for part in ("removed", "added"))
        return cls(removed, added)


NO_CHANGE = Change()


def net_change(changes: Iterable[Change]) -> Change:
    """What changes made one after the other come to. Raises ``GraphError`` when they do not follow from each other."""
    removed: dict[Key, Edge] = {}
    added: dict[Key, Edge] = {}
    for change in changes:
        for edges, into, out_of in ((change.removed, removed, added), (change.added, added, removed)):
            for edge in edges:
                if out_of.get(edge.key) == edge:
                    del out_of[edge.key]
                elif edge.key in into:
                    raise GraphError("EDGE_CHANGED", f"{_named(edge)} has been changed by others in between")
                else:
                    into[edge.key] = edge
    return Change(tuple(removed.values()), tuple(added.values()))


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
            raise GraphError("EDGE_CHANGED", f"{_named(edge)} has been made anew since, for another reason")
        for end in edge.ends:
            self._touching[end] = {key: kept for key, kept in self._touching[end].items() if key != edge.key}

    def _add(self, edge: Edge) -> None:
        self._check_absent(edge)
        if edge.type in BACKBONE:
            path = self._path(edge.target, edge.source)
            if path:
                raise GraphError("WOULD_CREATE_CYCLE", f"{_named(edge)} would close a cycle: {_chain((edge, *path))}")
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
            raise GraphError("EDGE_NOT_FOUND", f"there is no edge {_named(edge)}")
        return found

    def _check_absent(self, edge: Edge) -> None:
        if edge.key in self._touching.get(edge.source, {}):
            raise GraphError("EDGE_ALREADY_EXISTS", f"there is an edge {_named(edge)} already")

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
        f"{_named(edge)} contradicts {_named(other)} ({other.reason}); remove or retype that one if it is wrong",
    )


def _named(edge: Edge) -> str:
    return f"{edge.source} {edge.type} {edge.target}"


def _chain(path: Iterable[Edge]) -> str:
    edges = list(path)
    assert all(one.target == next_one.source for one, next_one in pairwise(edges))
    return "".join(f"{edge.source} {edge.type} " for edge in edges) + edges[-1].target
