"""Filters and order of the tasks of a split."""

from __future__ import annotations

import hashlib
import random

import pytest

from skillarena.conf.errors import ConfigError
from skillarena.envs.interface import Task
from skillarena.envs.task_choice import choose_tasks


def task(task_type: str, number: int) -> Task:
    name = f"{task_type}/{number}"
    return Task("bench", "all", hashlib.sha256(name.encode()).hexdigest(), name, task_type, f"Do {name}.")


TASKS = [task("boil", n) for n in range(5)] + [task("melt", n) for n in range(2)] + [task("find", n) for n in range(3)]


def test_types_take_turns_by_name_and_ids_ascend_within_a_type() -> None:
    chosen = choose_tasks(TASKS)
    turns = ["boil", "find", "melt"] * 2 + ["boil", "find"] + ["boil"] * 2
    assert [task.task_type for task in chosen] == turns
    for task_type in ("boil", "find", "melt"):
        ids = [task.id for task in chosen if task.task_type == task_type]
        assert ids == sorted(ids)


def test_order_depends_on_content_alone() -> None:
    shuffled = random.Random(1).sample(TASKS, len(TASKS))
    assert choose_tasks(shuffled) == choose_tasks(TASKS)


def test_limit_keeps_a_mix_of_types() -> None:
    chosen = choose_tasks(TASKS, limit=3)
    assert [task.task_type for task in chosen] == ["boil", "find", "melt"]
    assert choose_tasks(TASKS, limit=100) == choose_tasks(TASKS)


def test_types_and_ids_filter_together() -> None:
    boil, find = TASKS[0], TASKS[-1]
    assert {task.task_type for task in choose_tasks(TASKS, task_types=["find"])} == {"find"}
    assert choose_tasks(TASKS, task_ids=[boil.id, find.name]) == [boil, find]
    assert choose_tasks(TASKS, task_ids=[boil.id[:8], find.id], task_types=["boil"]) == [boil]
    with pytest.raises(ConfigError, match="leave no task"):
        choose_tasks(TASKS, task_ids=[boil.id], task_types=["find"])


def test_a_task_named_twice_is_played_once() -> None:
    assert choose_tasks(TASKS, task_ids=[TASKS[0].id, TASKS[0].name]) == [TASKS[0]]


def test_misspelt_type_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'boil'") as caught:
        choose_tasks(TASKS, task_types=["boill"])
    assert "find, melt" in caught.value.fix


def test_unknown_short_and_ambiguous_ids_are_refused() -> None:
    with pytest.raises(ConfigError, match="did you mean 'boil/4'"):
        choose_tasks(TASKS, task_ids=["boil/44"])
    with pytest.raises(ConfigError, match="unknown task"):
        choose_tasks(TASKS, task_ids=[TASKS[0].id[:7]])
    twins = [Task("bench", "all", "0" * 63 + digit, f"twin {digit}", "boil", "goal") for digit in "01"]
    with pytest.raises(ConfigError, match="fits 2 tasks"):
        choose_tasks(twins, task_ids=["0" * 8])


@pytest.mark.parametrize("limit", [0, -1])
def test_limit_under_one_is_refused(limit: int) -> None:
    with pytest.raises(ConfigError, match="limit"):
        choose_tasks(TASKS, limit=limit)
