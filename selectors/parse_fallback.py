"""What stands in for a parse that nobody could make; always marked, so that it is counted and shown."""

from __future__ import annotations

from skillarena.envs.interface import Task
from skillarena.selectors.interface import ParsedSkill, ParsedTask, Skill


def one_subtask(task: Task) -> ParsedTask:
    """The task as one sub-task, its instruction, between "not started" and "done"."""
    instruction = " ".join(task.goal.split())
    return ParsedTask((instruction,), (f"Not started: {instruction}", f"Done: {instruction}"), fallback=True)


def described_skill(skill: Skill) -> ParsedSkill:
    """A skill that requires nothing and completes what its description says (its name where it has none)."""
    return ParsedSkill(None, skill.description.strip() or skill.name, fallback=True)
