"""The candidates of a task: the skills whose metadata is closest to the instruction (coarse recall)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from skillarena.conf.errors import LibraryError
from skillarena.envs.interface import Task
from skillarena.selectors.interface import SelectedSkill, Skill
from skillarena.selectors.measure import offline
from skillarena.selectors.options import check_counts
from skillarena.selectors.parts import Parts
from skillarena.selectors.recall import Recall


@dataclass(frozen=True, slots=True)
class Candidate:
    """A recalled skill."""

    skill: Skill
    cosine: float
    """Similarity of the instruction and the skill's metadata, -1 to 1."""


class Shortlist:
    """The K nearest skills of any task; the index is built at the first one.

    Args:
        parts: where library and embedder come from.
        size: K.
        option: the user's name for K, for messages.

    Raises:
        ConfigError: K < 1.
        LibraryError: the library has fewer than K skills.
    """

    def __init__(self, parts: Parts, size: int, *, option: str = "k") -> None:
        check_counts(**{option: size})
        self._parts = parts
        self._size = size
        if size > len(parts.library):
            raise LibraryError(
                f"{option}={size} asks for more skills than the library's {len(parts.library)}",
                f"set {option} to {len(parts.library)} or less, or choose a larger library",
            )

    def candidates(self, task: Task) -> list[Candidate]:
        """K candidates, nearest first."""
        skills = self._parts.library.skills
        return [Candidate(skills[index], cosine) for index, cosine in self._recall.top(task.goal, self._size)]

    @cached_property
    def _recall(self) -> Recall:
        with offline():
            return Recall(self._parts.library, self._parts.embedder)


def choose(skill: Skill, score: float, reason: str) -> SelectedSkill:
    """A skill as handed to the agent."""
    return SelectedSkill(skill.id, skill.name, skill.description, skill.text, score, reason)
