"""SkillDAG as an agent uses it, for tests: short ways to open sessions, call tools and end episodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
from selector_contract import ScoredParts, WordEmbedder, task

from skillarena.envs.interface import Task
from skillarena.selectors.heuristic_parser import HeuristicParser
from skillarena.selectors.interface import Selection, Skill
from skillarena.selectors.library import SkillLibrary
from skillarena.selectors.live import EpisodeRecord, Lesson
from skillarena.selectors.skilldag.selector import SkillDag
from skillarena.selectors.skilldag.session import DagSession

NAMES = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta")
UNRELATED = SkillLibrary(tuple(Skill(name, name, f"{name} {name} {name}", "") for name in NAMES))
"""Skills whose cold-started graph has no edges."""


def parts_of(folder: Path, library: SkillLibrary = UNRELATED) -> ScoredParts:
    return ScoredParts(library, WordEmbedder(), HeuristicParser(), folder)


def attend(dag: SkillDag, name: str = "one") -> DagSession:
    """A session for a task with this goal."""
    return dag.attend(task(name), Selection())


def call(session: DagSession, tool: str, **arguments: Any) -> dict[str, Any]:
    """A tool's answer."""
    result = {each.name: each for each in session.tools}[tool].call(arguments)
    answer: dict[str, Any] = orjson.loads(result.text)
    assert answer["ok"] == result.ok
    return answer


def add(session: DagSession, source: str, target: str, edge_type: str = "depends_on", reason: str = "seen") -> Any:
    """The id of an edge's entry, or the code of its refusal."""
    answer = call(session, "edit_edge", source=source, target=target, type=edge_type, reason=reason)
    return answer["entry"] if answer["ok"] else answer["error"]["code"]


def lesson(session: DagSession, *, won: bool = True) -> Lesson:
    """What a session teaches when its episode has ended."""
    taught = session.close(EpisodeRecord("", (), won, 100.0 if won else 0.0, 0, ()))
    assert taught is not None
    return taught


def edges(dag: SkillDag, memory: bytes) -> list[str]:
    """All edges of a memory's graph, as text."""
    return [f"{edge['source']} {edge['type']} {edge['target']}" for edge in dag.graph_json(memory)["edges"]]


def tasks(*goals: str) -> list[Task]:
    """Tasks with these goals."""
    return [task(goal) for goal in goals]
