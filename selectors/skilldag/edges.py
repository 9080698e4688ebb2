"""Edges, changes of a graph, and why they are refused (arXiv 2606.03056, section 3)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
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

    def __str__(self) -> str:
        return f"{self.source} {self.type} {self.target}"

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
                    raise GraphError("EDGE_CHANGED", f"{edge} has been changed by others in between")
                else:
                    into[edge.key] = edge
    return Change(tuple(removed.values()), tuple(added.values()))
