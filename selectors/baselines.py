"""What any selection method has to beat: no skills, the nearest skills, all skills."""

from __future__ import annotations

from itertools import accumulate

from skillarena.envs.interface import Task
from skillarena.selectors.interface import FixedSession, Selection
from skillarena.selectors.options import check_counts
from skillarena.selectors.parts import Parts
from skillarena.selectors.shortlist import Shortlist, choose


class NoSkills:
    """The agent gets no skill."""

    needs = ()

    def __init__(self, parts: Parts) -> None:
        """Take the parts that every method gets; none is used."""

    def open(self, task: Task) -> FixedSession:
        """An empty selection."""
        return FixedSession(Selection(details={"method": "none", "chosen": []}))


class VectorTopK:
    """The skills whose metadata embeddings are nearest to the instruction's.

    Args:
        parts: library and embedder.
        top_k: skills to choose.

    Raises:
        ConfigError: top_k < 1.
        LibraryError: the library has fewer than top_k skills.
    """

    needs = ("embedder",)

    def __init__(self, parts: Parts, *, top_k: int = 1) -> None:
        self._shortlist = Shortlist(parts, top_k, option="top_k")

    def open(self, task: Task) -> FixedSession:
        """Choose skills. Raises ``RerankerError``."""
        candidates = self._shortlist.candidates(task)
        return FixedSession(
            Selection(
                skills=tuple(
                    choose(candidate.skill, candidate.cosine, f"Rank {rank} by similarity of metadata and instruction.")
                    for rank, candidate in enumerate(candidates, start=1)
                ),
                details={
                    "method": "vector",
                    "candidates": [
                        {"id": candidate.skill.id, "name": candidate.skill.name, "cosine": candidate.cosine}
                        for candidate in candidates
                    ],
                    "chosen": [candidate.skill.id for candidate in candidates],
                },
            )
        )


class Vanilla:
    """The whole library in its own order, as far as it fits into the prompt.

    Args:
        parts: library.
        max_chars: characters of skill text to spend; a skill that would exceed them ends the list, and the selection
            is then marked ``library_truncated``.

    Raises:
        ConfigError: max_chars < 1.
    """

    needs = ()

    def __init__(self, parts: Parts, *, max_chars: int = 100_000) -> None:
        check_counts(max_chars=max_chars)
        self._library = parts.library
        self._max_chars = max_chars

    def open(self, task: Task) -> FixedSession:
        """The same selection for every task."""
        skills = self._library.skills
        ends = accumulate(len(skill.text) for skill in skills)
        fitting = sum(end <= self._max_chars for end in ends)
        return FixedSession(
            Selection(
                skills=tuple(choose(skill, 0.0, "Part of the library.") for skill in skills[:fitting]),
                marks=("library_truncated",) if fitting < len(skills) else (),
                details={
                    "method": "vanilla",
                    "fitting": fitting,
                    "library": len(skills),
                    "chosen": [skill.id for skill in skills[:fitting]],
                },
            )
        )
