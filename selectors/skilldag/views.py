"""The texts by which skills are compared, and their vectors (arXiv 2606.03056, section 3.2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from skillarena.selectors.interface import Embedder, Skill

PREVIEW_CHARS = 1200
_BLOCK = 1024
"""Texts encoded in one call."""


def preview(skill: Skill) -> str:
    """The start of a skill's body on one line, without headings."""
    lines = (line for line in skill.body.splitlines() if not line.startswith("#"))
    return " ".join(" ".join(lines).split())[:PREVIEW_CHARS]


def self_text(skill: Skill) -> str:
    """What a skill is: id, description and the start of its body."""
    return f"{skill.id}: {skill.description}\n\n{preview(skill)}".strip()


class DistinctVectors:
    """Vectors of texts, one for each distinct text, so that equal texts tie exactly.

    Args:
        texts: any number.
        embedder: gives unit vectors. Raises ``RerankerError``.
        kind: what the texts are to the embedder.
    """

    def __init__(self, texts: Iterable[str], embedder: Embedder, kind: Literal["query", "document"]) -> None:
        rows: dict[str, int] = {}
        self.row = np.array([rows.setdefault(text, len(rows)) for text in texts], dtype=np.intp)
        """For each text the index of its vector."""
        distinct = list(rows)
        blocks = [distinct[at : at + _BLOCK] for at in range(0, len(distinct), _BLOCK)]
        vectors = [embedder.encode(block, kind) for block in blocks] or [np.empty((0, 0), dtype=np.float32)]
        self.vectors: NDArray[np.float32] = np.concatenate(vectors)
        """float32[distinct texts, d]"""

    def of(self, texts: Sequence[int] | NDArray[np.intp]) -> NDArray[np.float32]:
        """float32[n, d] for texts by their index."""
        return self.vectors[self.row[texts]]
