"""Skills drawn by lot: what a choice is worth that knows nothing of the task."""

from __future__ import annotations

from random import Random

from skillarena.envs.interface import Task
from skillarena.selectors.interface import FixedSession, Selection
from skillarena.selectors.parts import Parts
from skillarena.selectors.shortlist import check_size, choose


class RandomChoice:
    """Skills drawn without replacement, each as likely as any other.

    The draw depends on the seed, the task's identity and the number of skills, and on nothing else.

    Args:
        parts: library.
        top_k: skills to draw.
        seed: another one draws other skills for the same tasks.

    Raises:
        ConfigError: top_k < 1.
        LibraryError: the library has fewer than top_k skills.
    """

    needs = ()

    def __init__(self, parts: Parts, *, top_k: int = 1, seed: int = 0) -> None:
        check_size(parts.library, "top_k", top_k)
        self._library = parts.library
        self._top_k = top_k
        self._seed = seed

    def open(self, task: Task) -> FixedSession:
        """Draw skills."""
        lot = Random(f"{self._seed}/{task.id}")  # noqa: S311 - no secrets here
        drawn = [self._library.skills[index] for index in lot.sample(range(len(self._library)), self._top_k)]
        return FixedSession(
            Selection(
                skills=tuple(choose(skill, 0.0, f"Drawn from {len(self._library)} skills by lot.") for skill in drawn),
                details={"method": "random", "seed": self._seed, "chosen": [skill.id for skill in drawn]},
            )
        )
