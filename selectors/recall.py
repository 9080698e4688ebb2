"""Coarse recall: the skills whose metadata is nearest to a query."""

from __future__ import annotations

import numpy as np

from skillarena.conf.errors import LibraryError
from skillarena.selectors.interface import Embedder
from skillarena.selectors.library import SkillLibrary


class Recall:
    """Exact search over cosine(E(query), E(m_i)), m_i being name and description (SkillReranker paper, setting).

    Making one embeds the metadata of the whole library; behind a ``CachedEmbedder`` only what it has never seen.
    Raises ``RerankerError``.

    Args:
        library: what to search.
        embedder: gives unit vectors.
    """

    def __init__(self, library: SkillLibrary, embedder: Embedder) -> None:
        self._embedder = embedder
        metadata = [skill.metadata for skill in library.skills]
        # One row for each distinct text, so that equal texts tie exactly, wherever their rows would lie.
        rows = {text: row for row, text in enumerate(dict.fromkeys(metadata))}
        self._row_of_skill = np.array([rows[text] for text in metadata])
        self._vectors = embedder.encode(list(rows), "document")

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
