"""Which tasks of a split are played, and in what order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from skillarena.conf.errors import ConfigError, nearest
from skillarena.envs.interface import Task

SHORTEST_PREFIX = 8
"""Fewest hex digits that may stand for an id."""


def choose_tasks(
    tasks: Sequence[Task],
    *,
    task_types: Sequence[str] | None = None,
    task_ids: Sequence[str] | None = None,
    limit: int | None = None,
) -> list[Task]:
    """Filter ``tasks`` and bring them into an order that depends on their content alone.

    The order takes one task of each type in turn (types by name, tasks of a type by id), so that the first ``limit``
    tasks are a mix of types.

    Args:
        tasks: all tasks of the split.
        task_types: types to keep; None or empty keeps all.
        task_ids: tasks to keep, each by full id, by an unambiguous beginning of at least 8 digits, or by name; None or
            empty keeps all.
        limit: most tasks to return; None returns all.

    Raises:
        ConfigError: an unknown type, an unknown or ambiguous task, a limit under 1, or filters that leave nothing.
    """
    task_types, task_ids = _words("task_types", task_types), _words("task_ids", task_ids)
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
        raise ConfigError(f"limit is {limit!r}", "give a whole number of 1 or more, or null for all tasks")
    kept = list(tasks)
    if task_types:
        known = sorted({task.task_type for task in tasks})
        for task_type in task_types:
            if task_type not in known:
                hint = nearest(task_type, known)
                raise ConfigError(f"unknown task type {task_type!r}{hint}", f"choose from: {', '.join(known)}")
        kept = [task for task in kept if task.task_type in task_types]
    if task_ids:
        wanted = {_find(tasks, reference).id for reference in task_ids}
        kept = [task for task in kept if task.id in wanted]
    if tasks and not kept:
        raise ConfigError("task_types and task_ids leave no task", "remove one of the two filters")
    return _mixed(kept)[:limit]


def _words(option: str, values: Any) -> list[str]:
    """The option's words. An id of digits only comes as a number when it was not quoted."""
    if isinstance(values, str):
        raise ConfigError(f"{option} must be a list, not {values!r}", f"write {option}=[{values}]")
    words = [str(value) if isinstance(value, int) and not isinstance(value, bool) else value for value in values or ()]
    for word in words:
        if not isinstance(word, str):
            raise ConfigError(f"{option} holds {word!r}, which is no text", f"quote it: '{option}=[\"12e45678\"]'")
    return words


def _find(tasks: Sequence[Task], reference: str) -> Task:
    found = [task for task in tasks if reference in (task.id, task.name)]
    if not found and len(reference) >= SHORTEST_PREFIX:
        found = [task for task in tasks if task.id.startswith(reference)]
    if len(found) == 1:
        return found[0]
    if found:
        raise ConfigError(f"task id {reference!r} fits {len(found)} tasks", "give more digits")
    hint = nearest(reference, [task.name for task in tasks])
    raise ConfigError(f"unknown task {reference!r}{hint}", "give a task's id, its first 8 digits or more, or its name")


def _mixed(tasks: Sequence[Task]) -> list[Task]:
    by_type: dict[str, list[Task]] = {}
    for task in sorted(tasks, key=lambda task: (task.task_type, task.id)):
        by_type.setdefault(task.task_type, []).append(task)
    rounds = zip_longest(*by_type.values())
    return [task for one_of_each in rounds for task in one_of_each if task is not None]
