"""A selector that learns in the plainest way: it remembers which tasks it has seen and what the agent noted."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from skillarena.conf.errors import ConfigError, DataError
from skillarena.envs.interface import Task
from skillarena.selectors.interface import Selection
from skillarena.selectors.live import Advice, EpisodeRecord, Lesson, ToolResult, Trigger
from skillarena.selectors.shortlist import choose


class Diary:
    """Chooses the skill whose number is the number of entries; ``search`` and ``show`` look, ``write`` takes a note.

    The folder ``DIARY_TAUGHT`` of the environment gets a file for every update that is computed.

    Args:
        parts: library.
        episodes_per_update: tasks in a batch.
        learns: whether it does.
        fault: ``open``, ``call``, ``learn`` or ``memory`` fails, or learning takes too long (``hang``).
    """

    needs = ()

    def __init__(
        self,
        parts: Any,
        *,
        episodes_per_update: int = 2,
        learns: bool = True,
        fault: str = "",
    ) -> None:
        self._parts = parts
        self.episodes_per_update = episodes_per_update
        self.learns = learns
        self._fault = fault
        self._entries: list[Any] = []

    def initial_memory(self) -> bytes:
        return b"[]"

    def with_memory(self, memory: bytes) -> Diary:
        if self._fault == "memory":
            raise DataError("the diary is damaged")
        other = Diary(
            self._parts,
            episodes_per_update=self.episodes_per_update,
            learns=self.learns,
            fault=self._fault,
        )
        other._entries = json.loads(memory)
        return other

    def open(self, task: Task) -> DiarySession:
        skills = self._parts.library.skills
        skill = skills[len(self._entries) % len(skills)]
        details = {"method": "diary", "chosen": [skill.id], "entries": len(self._entries)}
        return self.attend(task, Selection((choose(skill, 1.0, "its turn"),), details=details))

    def attend(self, task: Task, selection: Selection) -> DiarySession:
        if self._fault == "open":
            raise ConfigError("no session today")
        return DiarySession(self._parts, task, selection, len(self._entries), self._fault)

    def learn(self, memory: bytes, lessons: Sequence[Lesson]) -> bytes:
        if self._fault == "learn":
            raise DataError("too hard")
        if self._fault == "hang":
            time.sleep(60)
        if "DIARY_TAUGHT" in os.environ:
            Path(os.environ["DIARY_TAUGHT"], f"{time.time_ns()}").write_text(
                ",".join(lesson.task_id for lesson in lessons)
            )
        return json.dumps([*json.loads(memory), *(lesson.content for lesson in lessons)], sort_keys=True).encode()

    def check_tasks(self, tasks: Sequence[Task]) -> None:
        if self.learns and any("unseen" in task.split for task in tasks):
            raise ConfigError("the diary must not see these tasks")


class DiarySession:
    trigger = Trigger(stale_steps=3, invalid_in_a_row=2)
    review = "What is worth a note?"

    def __init__(self, parts: Any, task: Task, selection: Selection, known: int, fault: str) -> None:
        self.selection = selection
        self.notes: list[str] = []
        self._parts = parts
        self._task = task
        self._known = known
        self._fault = fault
        self.tools = (
            Tool("search", '{"query": "what you need"}', self._search),
            Tool("show", '{"skill_id": "a skill"}', self._show),
            Tool("write", '{"note": "what you learned"}', self._write),
        )

    def _search(self, arguments: Mapping[str, Any]) -> ToolResult:
        if self._fault == "call":
            raise ConfigError("the index is gone")
        found = [{"skill_id": skill.id} for skill in self._parts.library.skills[:3]]
        return ToolResult(json.dumps({"ok": True, "matches": found, "query": arguments.get("query")}))

    def _show(self, arguments: Mapping[str, Any]) -> ToolResult:
        skill = self._parts.library.by_id.get(arguments.get("skill_id"))
        if skill is None:
            return ToolResult('{"ok": false}', ok=False)
        return ToolResult(json.dumps({"ok": True, "text": skill.text}), skills=(choose(skill, 0.0, "asked for"),))

    def _write(self, arguments: Mapping[str, Any]) -> ToolResult:
        self.notes.append(str(arguments.get("note")))
        return ToolResult('{"ok": true}')

    def advise(self, observation: str, actions: Sequence[str]) -> Advice:
        return Advice(f"{len(actions)} commands so far, and then: {observation[:20]}")

    def close(self, episode: EpisodeRecord | None = None) -> Lesson | None:
        if episode is None:
            return None
        content = {"task": self._task.name, "won": episode.won, "notes": self.notes, "known": self._known}
        return Lesson(self._task.benchmark, self._task.split, self._task.id, content)


class Tool:
    description = "Does what its name says."

    def __init__(self, name: str, usage: str, function: Any) -> None:
        self.name, self.usage, self._function = name, usage, function

    def call(self, arguments: Mapping[str, Any]) -> ToolResult:
        result: ToolResult = self._function(arguments)
        return result
