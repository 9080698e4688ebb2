"""Coarse recall: the skills whose texts are nearest to a query."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from skillarena.conf.errors import LibraryError
from skillarena.selectors.cache import digest
from skillarena.selectors.index_store import IndexStore
from skillarena.selectors.interface import Embedder, Skill
from skillarena.selectors.library import SkillLibrary
from skillarena.selectors.nearest import nearest

_BLOCK = 1024
"""Texts encoded in one call; no more of them are in memory at once."""


def metadata(skill: Skill) -> str:
    """m_i of the SkillReranker paper."""
    return skill.metadata


class Recall:
    """Exact search over cosine(E(query), E(text of a skill)).

    Making one embeds the texts of the whole library, unless the store has their vectors; behind a ``CachedEmbedder``
    only what that has never seen. It keeps float32[distinct texts, d], mapped from the store's file, and no text.
    Raises ``RerankerError``, or ``LibraryError`` where another process has been embedding the same texts for hours.

    Args:
        library: what to search.
        embedder: gives unit vectors.
        indexes: where the vectors are kept, for all processes of the machine together.
        text: what a skill is found by; the default is the SkillReranker paper's, name and description.
    """

    def __init__(
        self,
        library: SkillLibrary,
        embedder: Embedder,
        indexes: IndexStore,
        text: Callable[[Skill], str] = metadata,
    ) -> None:
        self._embedder = embedder
        # One row for each distinct text, so that equal texts tie exactly, wherever their rows would lie.
        rows: dict[bytes, int] = {}
        self._row_of_skill: NDArray[np.intp] = np.array(
            [rows.setdefault(digest(text(skill)), len(rows)) for skill in library.skills], dtype=np.intp
        )
        self._by_row = np.argsort(self._row_of_skill, kind="stable")
        self._starts = np.searchsorted(self._row_of_skill[self._by_row], np.arange(len(rows) + 1))
        firsts = self._by_row[self._starts[:-1]]

        def encoded() -> Iterator[NDArray[np.float32]]:
            for start in range(0, len(firsts), _BLOCK):
                block = firsts[start : start + _BLOCK]
                yield embedder.encode([text(library.skills[index]) for index in block], "document")

        texts = digest(*(row.hex() for row in rows)).hex()
        self._vectors = indexes.vectors_or_make("vectors", embedder.identity, texts, rows=len(rows), make=encoded)

    def vectors(self) -> NDArray[np.float32]:
        """float32[n, d], one row a skill, in the library's order; not to be written to."""
        all_differ = len(self._vectors) == len(self._row_of_skill)
        return self._vectors if all_differ else self._vectors[self._row_of_skill]

    def top(self, query: str, k: int) -> list[tuple[int, float]]:
        """The ``k`` nearest skills as (index in ``library.skills``, cosine), nearest first, ties by index.

        Raises ``LibraryError`` unless 1 <= k <= number of skills; ``RerankerError``.
        """
        size = len(self._row_of_skill)
        if not 1 <= k <= size:
            raise LibraryError(
                f"{k} skills are asked for and the library has {size}", f"ask for 1 to {size}, or use a larger library"
            )
        rows, cosines = nearest(self._vectors, self._embedder.encode([query], "query"), min(k, len(self._vectors)))
        # Rows are numbered by their first skills, so the nearest k rows hold the nearest k skills.
        found = [
            (int(index), cosine)
            for row, cosine in zip(rows[0], cosines[0].tolist(), strict=True)
            for index in self._by_row[self._starts[row] : self._starts[row + 1]]
        ]
        return sorted(found, key=lambda skill: (-skill[1], skill[0]))[:k]
