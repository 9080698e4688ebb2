"""The candidates of a task: the skills whose texts are closest to the instruction (coarse recall)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from skillarena.conf.errors import LibraryError
from skillarena.envs.interface import Task
from skillarena.selectors.interface import SelectedSkill, Skill
from skillarena.selectors.library import SkillLibrary
from skillarena.selectors.measure import offline
from skillarena.selectors.options import check_counts
from skillarena.selectors.parts import Parts
from skillarena.selectors.recall import Recall, metadata


@dataclass(frozen=True, slots=True)
class Candidate:
    """A recalled skill."""

    skill: Skill
    cosine: float
    """Similarity of the instruction and the skill's text, -1 to 1."""


class Shortlist:
    """The K nearest skills of any task; the index is built at the first one.

    Args:
        parts: where library and embedder come from.
        size: K.
        option: the user's name for K, for messages.
        text: what a skill is found by: its metadata, or another text made of it.

    Raises:
        ConfigError: K < 1.
        LibraryError: the library has fewer than K skills.
    """

    def __init__(self, parts: Parts, size: int, *, option: str = "k", text: Callable[[Skill], str] = metadata) -> None:
        check_size(parts.library, option, size)
        self._parts = parts
        self._size = size
        self._text = text

    def candidates(self, task: Task) -> list[Candidate]:
        """K candidates for a task's instruction, nearest first. Raises ``RerankerError``."""
        return self.nearest(task.goal)

    def nearest(self, query: str) -> list[Candidate]:
        """K candidates for any text, nearest first. Raises ``RerankerError``."""
        skills = self._parts.library.skills
        return [Candidate(skills[index], cosine) for index, cosine in self._recall.top(query, self._size)]

    @cached_property
    def _recall(self) -> Recall:
        with offline():
            return Recall(self._parts.library, self._parts.embedder, self._parts.indexes, self._text)


def check_size(library: SkillLibrary, option: str, size: int) -> None:
    """Whether a library has as many skills as an option asks for.

    Raises:
        ConfigError: it asks for no whole number of at least 1.
        LibraryError: the library has fewer.
    """
    check_counts(**{option: size})
    if size > len(library):
        raise LibraryError(
            f"{option}={size} asks for more skills than the library's {len(library)}",
            f"set selector.{option}={len(library)} or less, or choose a larger library",
        )


def choose(skill: Skill, score: float, reason: str) -> SelectedSkill:
    """A skill as handed to the agent."""
    return SelectedSkill(skill.id, skill.name, skill.description, skill.text, score, reason)
