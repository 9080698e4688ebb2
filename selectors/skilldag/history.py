"""A graph with the edits that made it: every edit is kept, can be undone, and an undoing can be undone itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from skillarena.selectors.skilldag.edges import NO_CHANGE, Change, GraphError, clean_reason, net_change
from skillarena.selectors.skilldag.graph import SkillGraph

Action = Literal["add", "remove", "retype", "rollback"]
_LATEST = 5
ACTIONS: tuple[Action, ...] = get_args(Action)


@dataclass(frozen=True, slots=True)
class Edit:
    """What an agent wants done to a graph, and why."""

    action: Action
    reason: str
    change: Change = NO_CHANGE
    """Of a rollback: nothing, as it follows from what is undone."""
    undoes: tuple[str, ...] = ()
    """Of a rollback: ids of the entries to undo."""

    def as_json(self) -> dict[str, Any]:
        """All fields."""
        return {
            "action": self.action,
            "reason": self.reason,
            "undoes": list(self.undoes),
            **self.change.as_json(),
        }

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Edit:
        """The edit whose ``as_json`` is a part of these fields. Raises ``KeyError``, ``TypeError``, ``ValueError``."""
        action = ACTIONS[ACTIONS.index(fields["action"])]
        return cls(action, fields["reason"], Change.from_json(fields), tuple(fields["undoes"]))


@dataclass(frozen=True, slots=True)
class Entry:
    """An edit that was carried out."""

    id: str
    edit: Edit
    change: Change
    """What it did to the graph."""
    task_id: str
    """The task whose episode it comes from."""


@dataclass(slots=True)
class History:
    """A graph and the entries that led to it from a first graph. Only ``commit`` changes it."""

    graph: SkillGraph
    entries: dict[str, Entry] = field(default_factory=dict)
    """By id, in the order in which they were carried out."""
    undone: dict[str, str] = field(default_factory=dict)
    """For each entry that is undone now, the rollback that did it."""
    on_pair: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    """Ids of the entries that concern an unordered pair of skills."""

    @property
    def revision(self) -> int:
        """Number of edits carried out."""
        return len(self.entries)

    def fork(self) -> History:
        """A history of its own that starts with everything of this one."""
        return History(self.graph.fork(), self.entries.copy(), self.undone.copy(), self.on_pair.copy())

    def commit(self, edit: Edit, entry_id: str, task_id: str) -> Entry:
        """Carry out an edit on the graph as it is now, or change nothing. Raises ``GraphError``."""
        old = [self._in_force(name) for name in edit.undoes]
        change = net_change(entry.change.inverse for entry in old) if old else edit.change
        undone = self._marked(edit.undoes, entry_id)
        self.graph.apply(change)
        self.undone = undone
        entry = self.entries[entry_id] = Entry(entry_id, edit, change, task_id)
        for pair in change.pairs:
            self.on_pair[pair] = (*self.on_pair.get(pair, ()), entry_id)
        return entry

    def rollback(self, reason: str, *, entry: str = "", task_id: str = "", steps: int = 0) -> Edit:
        """The edit that undoes entries, the latest first: one, all of a task that are in force, or the latest so many.

        Rollbacks are undone by naming them only.

        Raises:
            GraphError: there is no such entry in force, or no reason.
        """
        reason = clean_reason(reason)
        if entry:
            return Edit("rollback", reason, undoes=(self._in_force(entry).id,))
        in_force = [
            old.id
            for old in reversed(self.entries.values())
            if old.edit.action != "rollback" and old.id not in self.undone and task_id in ("", old.task_id)
        ]
        if not in_force:
            of_task = f" of the task {task_id}" if task_id else ""
            raise GraphError("NOTHING_TO_ROLLBACK", f"no edit{of_task} is in force")
        return Edit("rollback", reason, undoes=tuple(in_force[: steps or None]))

    def latest_on(self, pair: tuple[str, str]) -> list[Entry]:
        """The latest entries that concern an unordered pair of skills, oldest first."""
        return [self.entries[name] for name in self.on_pair.get(pair, ())[-_LATEST:]]

    def _in_force(self, name: str) -> Entry:
        if name not in self.entries:
            raise GraphError("ENTRY_NOT_FOUND", f"no edit {name!r} has been carried out")
        if name in self.undone:
            raise GraphError("ALREADY_ROLLED_BACK", f"the edit {name} is undone already, by {self.undone[name]}")
        return self.entries[name]

    def _marked(self, names: Sequence[str], by: str) -> dict[str, str]:
        """What is undone after a rollback: the entries named, but no longer what they had undone, and so on."""
        undone = self.undone.copy()
        marks: list[tuple[str, str | None]] = [(name, by) for name in names]
        while marks:
            name, rollback = marks.pop()
            if rollback is None:
                del undone[name]
            elif name in undone:
                raise GraphError("ALREADY_ROLLED_BACK", f"the edit {name} is undone already, by {undone[name]}")
            else:
                undone[name] = rollback
            marks += [(older, None if rollback else name) for older in self.entries[name].edit.undoes]
        return undone
