"""What depends on the library only and is shared by all memories and sessions; made at first use."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from functools import cached_property

from skillarena.selectors.interface import Skill
from skillarena.selectors.measure import offline
from skillarena.selectors.parts import Parts
from skillarena.selectors.recall import Recall
from skillarena.selectors.shortlist import Candidate
from skillarena.selectors.skilldag.cold_start import first_graph
from skillarena.selectors.skilldag.journal import FirstGraph
from skillarena.selectors.skilldag.views import self_text

_SUGGESTIONS = 5
_LIKE = 0.4


class LibraryIndex:
    """Vectors and first graph of a library.

    Args:
        parts: library and models.
        needs_view: see ``cold_start.first_graph``.
        classifier: likewise.
    """

    def __init__(self, parts: Parts, needs_view: str, classifier: str) -> None:
        self.skills: Mapping[str, Skill] = parts.library.by_id
        self._parts = parts
        self._needs_view = needs_view
        self._classifier = classifier

    @cached_property
    def first(self) -> FirstGraph:
        """The cold-started graph. Raises ``BackboneError``, ``RerankerError`` or ``LibraryError``."""
        with offline():
            return first_graph(self._parts, self._needs_view, self._classifier)

    def nearest(self, query: str, count: int) -> list[Candidate]:
        """The nearest skills by their own texts, nearest first, ties by id; all when there are no more."""
        skills = self._parts.library.skills
        found = self._recall.top(query, min(count, len(skills)))
        return [Candidate(skills[index], cosine) for index, cosine in found]

    def suggest(self, skill_id: str) -> list[str]:
        """Ids that look like another, the likest first."""
        return get_close_matches(skill_id, list(self.skills), n=_SUGGESTIONS, cutoff=_LIKE)

    @cached_property
    def _recall(self) -> Recall:
        with offline():
            return Recall(self._parts.library, self._parts.embedder, self._parts.indexes, self_text)
