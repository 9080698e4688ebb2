"""Which episodes a page knows, as columns of numbers: a hundred thousand of them are quick to filter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from skillarena.orchestration.report.archive import ArchivedCell, ArchivedTask
from skillarena.orchestration.report.episode import Episode
from skillarena.orchestration.report.lines import Line, Setting

ID_DIGITS = 12
"""Of an episode's id; enough to tell millions apart, and ``skillarena show`` takes them."""


@dataclass(frozen=True)
class TaskGroup:
    """All methods' episodes of one task in one setting."""

    setting: Setting
    place: int
    """Of the task among those of its setting."""
    episodes: tuple[int, ...]
    """Their numbers in the index."""
    disagreement: bool
    """Some solved it, others did not."""


class PageIndex:
    """All episodes of a report, in the order of cells and tasks.

    Args:
        cells: of the archive.
        lines: of the report, which give each cell its label.
    """

    def __init__(self, cells: Sequence[ArchivedCell], lines: Sequence[Line]) -> None:
        line_of = {cell.id: line for line in lines if not line.sizes for cell in line.cells}
        self.episodes: list[Episode] = []
        self._cells: list[tuple[ArchivedCell, Line]] = [(cell, line_of[cell.id]) for cell in cells]
        self._cell: list[int] = []
        self._task: list[int] = []
        self._tasks: dict[tuple[str, str, str], int] = {}
        self._named: list[ArchivedTask] = []
        self._groups: dict[tuple[Setting, int], list[int]] = {}
        for number, (cell, line) in enumerate(self._cells):
            for task in cell.tasks:
                if (row := cell.rows.get(task.id)) is not None:
                    self._add(number, line.setting, Episode(cell.directory, row), task)

    def _add(self, cell: int, setting: Setting, episode: Episode, task: ArchivedTask) -> None:
        key = (setting.benchmark, setting.split, task.id)
        if key not in self._tasks:
            self._tasks[key] = len(self._named)
            self._named.append(task)
        number = self._tasks[key]
        self._groups.setdefault((setting, number), []).append(len(self.episodes))
        self._cell.append(cell)
        self._task.append(number)
        self.episodes.append(episode)

    def groups(self) -> list[TaskGroup]:
        """Episodes by setting and task."""
        found = []
        places: dict[Setting, int] = {}
        for (setting, _), members in self._groups.items():
            solved = {self.episodes[number].row.success for number in members} - {None}
            place = places.get(setting, 0)
            places[setting] = place + 1
            found.append(TaskGroup(setting, place, tuple(members), len(solved) > 1))
        return found

    def columns(self) -> dict[str, Any]:
        """Plain data for the page: names once, then a list of numbers for each property of the episodes."""
        settings = sorted({line.setting for _, line in self._cells})
        methods = sorted({line.method for _, line in self._cells})
        types = sorted({task.type for task in self._named})
        rows = [episode.row for episode in self.episodes]
        outcomes = sorted({row.outcome for row in rows})
        return {
            "settings": [[setting.backbone, setting.benchmark, setting.split] for setting in settings],
            "methods": methods,
            "types": types,
            "outcomes": outcomes,
            "tasks": [[task.name, types.index(task.type)] for task in self._named],
            "cells": [
                {
                    "name": cell.name,
                    "setting": settings.index(line.setting),
                    "method": methods.index(line.method),
                    "seed": cell.axes.get("seed", ""),
                    "simulated": cell.simulated,
                }
                for cell, line in self._cells
            ],
            "id": [row.episode_id[:ID_DIGITS] for row in rows],
            "cell": self._cell,
            "task": self._task,
            "outcome": [outcomes.index(row.outcome) for row in rows],
            "solved": [-1 if row.success is None else int(row.success) for row in rows],
            "reward": [None if row.reward is None else round(row.reward, 2) for row in rows],
            "steps": [row.env_steps for row in rows],
            "tokens": [row.total_tokens for row in rows],
            "seconds": [round(row.wall_seconds, 2) for row in rows],
            "errors": {str(number): row.error for number, row in enumerate(rows) if row.error},
        }
