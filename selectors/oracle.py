"""Skills that people labelled as needed for the task's type: the upper bound of choosing."""

from __future__ import annotations

from pathlib import Path

from skillarena.envs.interface import Task
from skillarena.selectors.interface import FixedSession, Selection
from skillarena.selectors.labels import LabelledLibrary, load_labels
from skillarena.selectors.options import check_optional_counts
from skillarena.selectors.parts import Parts
from skillarena.selectors.shortlist import choose


class Oracle:
    """Gives the labelled skills of a task's type, the most needed first.

    It knows the type, which no other method is told. A task whose type has no labels, or none in this library, gets no
    skill and is marked ``not_labelled``. Of several skills with a labelled name the first by id is given.

    Args:
        parts: library.
        labels: a JSON file (see ``load_labels``); None takes the shipped labels.
        top_k: most skills to give; None gives all.

    Raises:
        ConfigError: top_k < 1, or the file is no labels file.
        LibraryError: the library has none of the labelled skills.
    """

    needs = ()

    def __init__(self, parts: Parts, *, labels: str | Path | None = None, top_k: int | None = None) -> None:
        check_optional_counts(top_k=top_k)
        loaded = load_labels(labels)
        self.identity = loaded.identity
        self._labelled = LabelledLibrary(loaded, parts.library)
        self._top_k = top_k

    def open(self, task: Task) -> FixedSession:
        """Look the task's type up."""
        needed = self._labelled.needed(task.benchmark, task.task_type)
        skills = list(dict.fromkeys(alike[0] for alike in needed))
        given = tuple(
            choose(skill, 1.0 / rank, f"Labelled as number {rank} of what {task.task_type} needs.")
            for rank, skill in enumerate(skills[: self._top_k], start=1)
        )
        return FixedSession(
            Selection(
                skills=given,
                marks=() if given else ("not_labelled",),
                details={
                    "method": "oracle",
                    "task_type": task.task_type,
                    "ranking": [skill.id for skill in skills],
                    "chosen": [skill.id for skill in given],
                },
            )
        )
