"""A parser without a model: wording of goals and structure of documents."""

from __future__ import annotations

from skillarena.envs.interface import Task
from skillarena.selectors.alfworld_goals import parse_goal
from skillarena.selectors.instruction_structure import parse_instruction
from skillarena.selectors.interface import ParsedSkill, ParsedTask, Skill
from skillarena.selectors.parse_fallback import one_subtask
from skillarena.selectors.skill_structure import parse_document


class HeuristicParser:
    """Parses ALFWorld's goals by template, other instructions by sentences, and skills by headings and description."""

    identity = "heuristic/1"
    """Raise the number with every change of what any text is parsed to: parses are cached under it."""

    def parse_task(self, task: Task) -> ParsedTask:
        """Sub-tasks and states; one sub-task, marked as a fallback, for an instruction that shows no structure."""
        return parse_goal(task.goal) or parse_instruction(task.goal) or one_subtask(task)

    def parse_skill(self, skill: Skill) -> ParsedSkill:
        """Precondition and completion; marked as a fallback when no text says what the skill achieves."""
        return parse_document(skill)
