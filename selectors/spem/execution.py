"""An episode as a graph: which step made which later step possible (SPEM paper, Skill-DAG extraction).

Nodes are the accepted commands in order, and the successful end. The paper names the kinds of edges; the rules behind
them are ours. They read nothing but the texts, so they hold for any text world, and where the texts leave a doubt they
state a dependency rather than miss one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from skillarena.selectors.live import EpisodeRecord
from skillarena.selectors.spem.commands import RESET, SWITCHING, TAKING, Command, Kind, mentions, parse_commands


@dataclass(frozen=True, slots=True)
class Act:
    """An accepted command of an episode."""

    action: str
    observation: str
    command: Command
    advances: bool
    """It raised the score, or won."""


class EdgeKind(StrEnum):
    """Why one node leads to another."""

    TEMPORAL = "temporal"
    """It came next. Says nothing about need, so slicing leaves these out."""
    ENTITY = "entity"
    """The later command names a thing that the earlier one changed or brought to light."""
    STATE = "state"
    """The earlier command brought about the state in which the later one worked: the place, the time that had passed,
    and for the last command also what was carried and switched on."""
    END = "end"
    """It raised the score or won, so the end is reached by it."""


@dataclass(frozen=True, slots=True, order=True)
class Edge:
    """From a node to a later one."""

    source: int
    target: int
    kind: EdgeKind


@dataclass(frozen=True)
class ExecutionGraph:
    """Acts 0..n-1, the end n, and what connects them."""

    acts: tuple[Act, ...]
    edges: frozenset[Edge]

    @property
    def end(self) -> int:
        """The node of success."""
        return len(self.acts)

    def needs(self) -> list[set[int]]:
        """For each node, the end included, the nodes it directly depends on; all are earlier."""
        needs: list[set[int]] = [set() for _ in range(self.end + 1)]
        for edge in self.edges:
            if edge.kind is not EdgeKind.TEMPORAL:
                needs[edge.target].add(edge.source)
        return needs


def accepted_acts(record: EpisodeRecord) -> tuple[Act, ...]:
    """The commands that the environment accepted since the task was last begun anew."""
    score = 0.0
    begun: list[tuple[str, str, bool]] = []
    for step in record.steps:
        if step.action.lower().split()[:1] == [RESET]:
            begun = []
        elif step.valid:
            begun.append((step.action, step.observation, step.score > score))
        score = step.score
    commands = parse_commands([action for action, _, _ in begun])
    last = len(begun) - 1
    return tuple(
        Act(action, observation, command, raised or (record.won and number == last))
        for number, ((action, observation, raised), command) in enumerate(zip(begun, commands, strict=True))
    )


def build_graph(acts: Sequence[Act], opening: str) -> ExecutionGraph:
    """The execution graph of a won episode.

    Args:
        acts: its accepted commands.
        opening: what the agent was shown first.
    """
    graph = _Builder(acts, opening)
    for number in range(len(acts)):
        graph.add(number)
    graph.finish()
    return ExecutionGraph(tuple(acts), frozenset(graph.edges))


class _Builder:
    """Goes through the acts once and remembers who did what last."""

    def __init__(self, acts: Sequence[Act], opening: str) -> None:
        self.edges: set[Edge] = set()
        self._acts = acts
        self._opening = opening
        self._changed_by: dict[str, int] = {}
        self._arrival: list[int | None] = []
        """For each act so far, the move that led to the place where it happened."""
        self._waits: list[int] = []
        """Waits since the score last rose."""

    def add(self, number: int) -> None:
        act = self._acts[number]
        command = act.command
        arrival = self._arrival[-1] if self._arrival else None
        if number and self._acts[number - 1].command.kind is Kind.MOVE:
            arrival = number - 1
        self._arrival.append(arrival)
        if number:
            self._connect([number - 1], number, EdgeKind.TEMPORAL)
        if arrival is not None and (command.needs_way or command.kind in (Kind.CHANGE, Kind.LOOK)):
            self._connect([arrival], number, EdgeKind.STATE)
        if command.kind in (Kind.CHANGE, Kind.LOOK):
            self._connect(self._sources(number), number, EdgeKind.ENTITY)
        if command.needs_way and command.target in self._changed_by:  # an opened door
            self._connect([self._changed_by[command.target]], number, EdgeKind.ENTITY)
        if command.kind is Kind.CHANGE:
            self._changed_by |= dict.fromkeys(command.changes, number)
        if command.kind is Kind.WAIT:
            self._waits.append(number)
        if act.advances:
            self._connect([wait for wait in self._waits if wait != number], number, EdgeKind.STATE)
            self._waits = []

    def finish(self) -> None:
        """Connect what success rests on."""
        end = len(self._acts)
        lasting = {
            number
            for name, number in self._changed_by.items()
            if (command := self._acts[number].command).target == name and command.verb in TAKING | SWITCHING
        }
        self._connect(lasting - {end - 1}, end - 1, EdgeKind.STATE)
        self._connect([number for number, act in enumerate(self._acts) if act.advances], end, EdgeKind.END)

    def _connect(self, sources: Iterable[int], target: int, kind: EdgeKind) -> None:
        self.edges |= {Edge(source, target, kind) for source in sources}

    def _sources(self, number: int) -> set[int]:
        sources: set[int] = set()
        for name in self._acts[number].command.names:
            if name in self._changed_by:
                sources.add(self._changed_by[name])
            else:
                sources |= self._revealing(name, number)
        return sources

    def _revealing(self, name: str, number: int) -> set[int]:
        """Changes that brought a thing to light which nobody has changed yet.

        The change whose answer first mentions it; where a look does, or nothing, any change before in the same place.
        """
        if mentions(self._opening, name):
            return set()
        first = next((at for at in range(number) if self._mentioned(at, name)), None)
        if first is not None and self._acts[first].command.kind is Kind.CHANGE:
            return {first}
        return {
            at
            for at in range(number if first is None else first)
            if self._acts[at].command.kind is Kind.CHANGE and self._place(at) == self._place(number)
        }

    def _mentioned(self, number: int, name: str) -> bool:
        act = self._acts[number]
        return name in act.command.names or mentions(act.observation, name)

    def _place(self, number: int) -> str:
        arrival = self._arrival[number]
        return "" if arrival is None else self._acts[arrival].command.target
