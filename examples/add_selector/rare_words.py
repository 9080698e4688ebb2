"""A selector of one's own: skills that share the instruction's rarest words."""

from __future__ import annotations

import math
import re
from collections import Counter

from skillarena.envs.interface import Task
from skillarena.selectors.interface import FixedSession, Selection
from skillarena.selectors.parts import Parts
from skillarena.selectors.shortlist import check_size, choose


def words(text: str) -> set[str]:
    """Lower-case words of three letters and more."""
    return set(re.findall(r"[a-z]{3,}", text.lower()))


class RareWords:
    """Scores a skill by the instruction's words that occur in its text; a word in few skills counts more.

    Args:
        parts: what every selector gets; this one reads the library and no model.
        top_k: skills to choose.

    Raises:
        ConfigError: top_k < 1.
        LibraryError: the library has fewer than top_k skills.
    """

    needs = ()  # of embedder, reranker, parser, llm: nothing is loaded that is not named here

    def __init__(self, parts: Parts, *, top_k: int = 1) -> None:
        check_size(parts.library, "top_k", top_k)
        self._skills = parts.library.skills
        self._words = [words(skill.text) for skill in self._skills]
        self._occurrences = Counter(word for found in self._words for word in found)
        self._top_k = top_k

    def open(self, task: Task) -> FixedSession:
        """Choose skills for one task; the same task always gives the same answer."""
        wanted = words(task.goal)
        shared = [sorted(wanted & found, key=lambda word: (self._occurrences[word], word)) for found in self._words]
        scores = [sum(self._weight(word) for word in found) for found in shared]
        best = sorted(range(len(scores)), key=lambda index: (-scores[index], index))[: self._top_k]
        chosen = tuple(
            choose(self._skills[index], scores[index], f"Shares {', '.join(shared[index][:3]) or 'no word'}.")
            for index in best
        )
        details = {"method": "rare_words", "chosen": [skill.id for skill in chosen]}
        return FixedSession(Selection(skills=chosen, details=details))

    def _weight(self, word: str) -> float:
        return math.log(len(self._skills) / self._occurrences[word]) if self._occurrences[word] else 0.0
