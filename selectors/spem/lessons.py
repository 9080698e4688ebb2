"""What an episode hands over to learning: its texts and outcome, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from skillarena.conf.errors import DataError
from skillarena.envs.interface import Task
from skillarena.selectors.interface import Selection
from skillarena.selectors.live import EpisodeRecord, Lesson, Step


@dataclass(frozen=True, slots=True)
class TaughtEpisode:
    """An episode to learn from."""

    task_id: str
    goal: str
    template: str | None
    """Source of the template that the agent was given."""
    record: EpisodeRecord


def make_lesson(task: Task, selection: Selection, record: EpisodeRecord) -> Lesson:
    """The lesson of an episode that started with a selection of SPEM's."""
    template = selection.details.get("template")
    content = {
        "goal": task.goal,
        "template": template["source"] if template else None,
        "record": asdict(record) | {"steps": [asdict(step) for step in record.steps], "skills": list(record.skills)},
    }
    return Lesson(task.benchmark, task.split, task.id, content)


def read_lesson(lesson: Lesson) -> TaughtEpisode:
    """The episode in a lesson. Raises ``DataError`` when there is none."""
    try:
        content: Mapping[str, Any] = lesson.content
        record = dict(content["record"])
        steps = tuple(Step(**step) for step in record.pop("steps"))
        skills = tuple(record.pop("skills"))
        return TaughtEpisode(
            lesson.task_id, content["goal"], content["template"], EpisodeRecord(steps=steps, skills=skills, **record)
        )
    except (KeyError, TypeError) as error:
        raise DataError(
            f"the lesson of task {lesson.task_id[:8]} is none of SPEM's ({error!r})",
            "delete it and play the task again",
        ) from error


def prefix_state(record: EpisodeRecord, steps: int) -> tuple[str, list[str]]:
    """What the agent had before it after some steps: the last observation and all commands."""
    before: Sequence[Step] = record.steps[:steps]
    observation = before[-1].observation if before else record.first_observation
    return observation, [step.action for step in before]
