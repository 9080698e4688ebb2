"""What may be learned from, and what must never be evaluated with a memory (SPEM paper: no leakage between splits)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from skillarena.conf.errors import ConfigError
from skillarena.envs.interface import Task
from skillarena.selectors.live import Lesson

_TRAINING_WORDS = frozenset({"train", "training"})


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


def is_training_split(split: str) -> bool:
    """Whether ``train`` or ``training`` is a word of the name, as in ``train`` and ``valid_train``.

    Every other split is for evaluation, a new one too, until its name says otherwise.
    """
    return not _TRAINING_WORDS.isdisjoint(re.split(r"[^a-z]+", split.lower()))


def check_learnable(sources: Sequence[Task] | Sequence[Lesson]) -> None:
    """Raise ``ConfigError`` unless all these tasks or lessons are of training splits."""
    evaluation = [source for source in sources if not is_training_split(source.split)]
    if evaluation:
        splits = sorted({f"{source.benchmark} {source.split}" for source in evaluation})
        raise ConfigError(
            f"{len(evaluation)} of {len(sources)} episodes are of evaluation splits ({', '.join(splits)}),"
            " from which a selector must not learn",
            "set selector.freeze=true (selector=spem_frozen), or choose a split for training, such as train",
        )


def check_unseen(provenance: Provenance, tasks: Collection[Task]) -> None:
    """Raise ``ConfigError`` when a memory has learned from these tasks, or from others of their splits."""
    seen = sum(task.id in provenance.tasks for task in tasks)
    alike = {(task.benchmark, task.split) for task in tasks} & provenance.splits
    if seen or alike:
        also = (
            f" and from their split ({', '.join(f'{name} {split}' for name, split in sorted(alike))})" if alike else ""
        )
        raise ConfigError(
            f"the memory has learned from {seen} of the {len(tasks)} tasks to be evaluated{also}",
            "use a memory that was learned on other tasks, or evaluate on another split",
        )
