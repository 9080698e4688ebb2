"""Coarse recall: the skills whose texts are nearest to a query."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from skillarena.conf.errors import LibraryError
from skillarena.selectors.cache import digest
from skillarena.selectors.interface import Embedder, Skill
from skillarena.selectors.library import SkillLibrary

_BLOCK = 1024
"""Texts encoded in one call; no more of them are in memory at once."""


def metadata(skill: Skill) -> str:
    """m_i of the SkillReranker paper."""
    return skill.metadata


class Recall:
    """Exact search over cosine(E(query), E(text of a skill)).

    Making one embeds the texts of the whole library; behind a ``CachedEmbedder`` only what it has never seen. It keeps
    float32[distinct texts, d] and no text. Raises ``RerankerError``.

    Args:
        library: what to search.
        embedder: gives unit vectors.
        text: what a skill is found by; the default is the SkillReranker paper's, name and description.
    """

    def __init__(self, library: SkillLibrary, embedder: Embedder, text: Callable[[Skill], str] = metadata) -> None:
        self._embedder = embedder
        # One row for each distinct text, so that equal texts tie exactly, wherever their rows would lie.
        rows: dict[bytes, int] = {}
        self._row_of_skill: NDArray[np.intp] = np.array(
            [rows.setdefault(digest(text(skill)), len(rows)) for skill in library.skills], dtype=np.intp
        )
        _, firsts = np.unique(self._row_of_skill, return_index=True)
        self._vectors = np.empty((0, 0), dtype=np.float32)
        for start in range(0, len(firsts), _BLOCK):
            block = firsts[start : start + _BLOCK]
            vectors = embedder.encode([text(library.skills[index]) for index in block], "document")
            if start == 0:
                self._vectors = np.empty((len(firsts), vectors.shape[1]), dtype=np.float32)
            self._vectors[start : start + len(block)] = vectors

    def vectors(self) -> NDArray[np.float32]:
        """float32[n, d], one row a skill, in the library's order."""
        return self._vectors[self._row_of_skill]

    def top(self, query: str, k: int) -> list[tuple[int, float]]:
        """The ``k`` nearest skills as (index in ``library.skills``, cosine), nearest first, ties by index.

        Raises ``LibraryError`` unless 1 <= k <= number of skills; ``RerankerError``.
        """
        size = len(self._row_of_skill)
        if not 1 <= k <= size:
            raise LibraryError(
                f"{k} skills are asked for and the library has {size}", f"ask for 1 to {size}, or use a larger library"
            )
        cosines = (self._vectors @ self._embedder.encode([query], "query")[0])[self._row_of_skill]
        nearest = np.argsort(-cosines, kind="stable")[:k]
        return [(int(index), float(cosines[index])) for index in nearest]
