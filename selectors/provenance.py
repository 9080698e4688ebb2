"""What a memory has learned from, and that it is never evaluated on that."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from skillarena.conf.errors import ConfigError
from skillarena.envs.interface import Task
from skillarena.selectors.live import Lesson


@dataclass(frozen=True, slots=True)
class Provenance:
    """All that a memory has learned from, won or not."""

    tasks: frozenset[str] = frozenset()
    """Identities of tasks, which stand for their content."""
    splits: frozenset[tuple[str, str]] = frozenset()
    """Benchmark and split."""

    def after(self, lessons: Iterable[Lesson]) -> Provenance:
        """With the sources of some lessons."""
        taught = list(lessons)
        return Provenance(
            self.tasks | {lesson.task_id for lesson in taught},
            self.splits | {(lesson.benchmark, lesson.split) for lesson in taught},
        )


def check_unseen(provenance: Provenance, tasks: Collection[Task], memory: str = "the memory") -> None:
    """Raise ``ConfigError`` when a memory has learned from these tasks, or from others of their splits.

    Args:
        provenance: what the memory has learned from.
        tasks: what is to be evaluated.
        memory: what to call it in the message.
    """
    seen = sum(task.id in provenance.tasks for task in tasks)
    alike = sorted({(task.benchmark, task.split) for task in tasks} & provenance.splits)
    if seen or alike:
        also = f" and from their split ({', '.join(f'{name} {split}' for name, split in alike)})" if alike else ""
        raise ConfigError(
            f"{memory} has learned from {seen} of the {len(tasks)} tasks to be evaluated{also}",
            "use a memory that was learned on other tasks, or play tasks of another split;"
            " to go on learning, repeat the command that made it",
        )
