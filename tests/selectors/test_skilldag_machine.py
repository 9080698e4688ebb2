"""Whatever agents do, in whatever order, at once and across reloads: the graph stays sound and nothing is lost."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import networkx as nx
import orjson
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from skilldag_calls import NAMES, attend, call, lesson, parts_of

from skillarena.selectors.live import Lesson
from skillarena.selectors.skilldag.edges import EDGE_TYPES, EXCLUDES
from skillarena.selectors.skilldag.graph import SkillGraph
from skillarena.selectors.skilldag.history import History
from skillarena.selectors.skilldag.selector import SkillDag
from skillarena.selectors.skilldag.session import DagSession

TYPE = st.sampled_from(EDGE_TYPES)
ENDS = st.sampled_from([(one, other) for one in NAMES[:3] for other in NAMES[:3]])
AT = st.integers(0, 2)


def check_sound(graph: SkillGraph) -> None:
    edges = graph.edges
    assert len({edge.key for edge in edges}) == len(edges)
    backbone = nx.DiGraph([(edge.source, edge.target) for edge in edges if edge.type in ("depends_on", "specializes")])
    assert nx.is_directed_acyclic_graph(backbone)
    excluding = {edge.ends for edge in edges if edge.type == EXCLUDES}
    assert not excluding & {edge.ends for edge in edges if edge.type != EXCLUDES}
    for edge in edges:
        assert edge in graph.touching(edge.source)
        assert edge in graph.touching(edge.target)
    assert sum(len(graph.touching(name)) for name in NAMES) == 2 * len(edges)


def check_history(history: History) -> None:
    """A rollback takes back exactly what it undoes, so the graph is the sum of the edits in force."""
    in_force = [entry for entry in history.entries.values() if entry.id not in history.undone]
    assert history.undone == {name: entry.id for entry in in_force for name in entry.edit.undoes}
    edits = [entry for entry in in_force if entry.edit.action != "rollback"]
    total = Counter(edge for entry in edits for edge in entry.change.added)
    total.subtract(edge for entry in edits for edge in entry.change.removed)
    assert {edge: count for edge, count in total.items() if count} == dict.fromkeys(history.graph.edges, 1)


class Agents(RuleBasedStateMachine):
    """Three sessions at a time on one memory, which are closed in any order and merged in task order."""

    @initialize()
    def start(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.dag = SkillDag(parts_of(Path(self._folder.name)))
        self.memory = self.dag.initial_memory()
        self.edits = self.carried_out = self.episodes = 0
        self._open()

    def teardown(self) -> None:
        if hasattr(self, "_folder"):
            self._folder.cleanup()

    def _open(self) -> None:
        self.now = self.dag.with_memory(self.memory)
        self.sessions: list[DagSession] = [attend(self.now, f"{self.episodes + at}") for at in range(3)]
        self.lessons: dict[int, Lesson] = {}

    def _edit(self, at: int, tool: str, **arguments: Any) -> None:
        if at in self.lessons:
            return
        graph = self.sessions[at]._overlay.graph
        before = graph.edges
        if tool == "edit_edge":
            promised = call(self.sessions[at], "propose_edge", **arguments)
            assert graph.edges == before
        answer = call(self.sessions[at], tool, **arguments)
        if tool == "edit_edge":
            assert promised["ok"] == answer["ok"]
            assert promised.get("error") == answer.get("error")
        if answer["ok"]:
            self.edits += 1
        else:
            assert graph.edges == before

    @rule(at=AT, edges=st.lists(st.tuples(ENDS, TYPE), min_size=1, max_size=4), reason=st.sampled_from("xy"))
    def add(self, at: int, edges: list[tuple[tuple[str, str], str]], reason: str) -> None:
        for (source, target), edge_type in edges:
            self._edit(at, "edit_edge", action="add", source=source, target=target, type=edge_type, reason=reason)

    @rule(at=AT, pick=st.integers(0, 20))
    def remove(self, at: int, pick: int) -> None:
        present = self.sessions[at]._overlay.graph.edges
        if present:
            edge = present[pick % len(present)]
            self._edit(
                at, "edit_edge", action="remove", source=edge.source, target=edge.target, type=edge.type, reason="x"
            )

    @rule(at=AT, pick=st.integers(0, 20), edge_type=TYPE, turned=st.booleans())
    def retype(self, at: int, pick: int, edge_type: str, turned: bool) -> None:
        present = self.sessions[at]._overlay.graph.edges
        if present:
            edge = present[pick % len(present)]
            ends = (edge.target, edge.source) if turned else (edge.source, edge.target)
            self._edit(
                at,
                "edit_edge",
                action="retype",
                source=ends[0],
                target=ends[1],
                type=edge_type,
                from_type=edge.type,
                reason="x",
            )

    @rule(at=AT, pick=st.integers(0, 30))
    def undo_an_entry(self, at: int, pick: int) -> None:
        entries = list(self.sessions[at]._overlay.history.entries.values())
        if entries:
            self._edit(at, "rollback", entry=entries[-1 - pick % len(entries)].id, reason="x")

    @rule(at=AT, pick=st.integers(0, 30))
    def undo_a_task(self, at: int, pick: int) -> None:
        entries = list(self.sessions[at]._overlay.history.entries.values())
        if entries:
            self._edit(at, "rollback", task_id=entries[-1 - pick % len(entries)].task_id, reason="x")

    @rule(at=AT, steps=st.integers(1, 4))
    def undo_steps(self, at: int, steps: int) -> None:
        self._edit(at, "rollback", steps=steps, reason="x")

    @rule(at=AT)
    def close(self, at: int) -> None:
        if at not in self.lessons:
            self.lessons[at] = orjson.loads(orjson.dumps(lesson(self.sessions[at])))

    @precondition(lambda self: len(getattr(self, "lessons", ())) > 0)
    @rule()
    def merge(self) -> None:
        for at in range(3):
            self.close(at)
        lessons = [Lesson(**self.lessons[at]) for at in range(3)]
        merged = self.now.learn(self.memory, lessons)
        assert merged == SkillDag(self.dag._parts).learn(self.memory, lessons)
        assert merged.startswith(self.memory)
        lines = [orjson.loads(line) for line in merged[len(self.memory) :].splitlines()]
        self.episodes += 3
        self.carried_out += sum("entry" in line and line["refused"] is None for line in lines)
        self.memory = merged
        self._open()

    @precondition(lambda self: hasattr(self, "memory"))
    @invariant()
    def nothing_is_lost(self) -> None:
        known = self.dag.graph_json(self.memory)
        unmerged = sum(len(session._overlay.edits) for session in self.sessions)
        assert known["episodes"] == self.episodes
        assert known["edits"] + unmerged == self.edits
        assert known["edits_carried_out"] == self.carried_out

    @precondition(lambda self: hasattr(self, "memory"))
    @invariant()
    def graphs_are_sound(self) -> None:
        for history in (self.now._history, *(session._overlay.history for session in self.sessions)):
            check_sound(history.graph)
            check_history(history)

    @precondition(lambda self: hasattr(self, "memory"))
    @invariant()
    def a_reload_gives_the_live_graph(self) -> None:
        again = SkillDag(self.dag._parts).with_memory(self.memory)
        assert again._history.graph.edges == self.now._history.graph.edges
        assert again._history.undone == self.now._history.undone
        assert again.learn(self.memory, []) == self.memory


Agents.TestCase.settings = settings(
    max_examples=40, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestAgents = Agents.TestCase
