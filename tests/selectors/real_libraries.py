"""Public skill libraries beside the checkout, and an embedder quick enough for the largest of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from skillarena.selectors.library import SkillLibrary

SHARED = Path(__file__).parents[3] / "shared" / "data"
LARGE = 67_884
"""Skills of the pool, as many as in the SkillReranker paper."""


def public_skills(benchmark: Literal["alfworld", "scienceworld"]) -> SkillLibrary:
    """The skills published for a benchmark; skips the test where they are not there."""
    return _load("skills", benchmark)


def pool(size: int = LARGE) -> SkillLibrary:
    """The first skills of the pool; skips the test where it is not there."""
    return SkillLibrary(_load("skills_pool.jsonl.xz").skills[:size])


@cache
def _load(*path: str) -> SkillLibrary:
    whole = SHARED.joinpath(*path)
    if not whole.exists():
        pytest.skip(f"there is no {whole}")
    return SkillLibrary.load([whole])


class HashedWords:
    """The beginnings of texts as counts of hashed words, thousands a second."""

    def __init__(self, dimensions: int = 384) -> None:
        self.identity = f"hashed words {dimensions}"
        self.longest_call = 0
        """Most texts that were encoded in one call."""
        self._dimensions = dimensions

    def encode(self, texts: Sequence[str], kind: Literal["query", "document"]) -> NDArray[np.float32]:
        self.longest_call = max(self.longest_call, len(texts))
        if not texts:
            return np.empty((0, self._dimensions), dtype=np.float32)
        rows = _vectorizer(self._dimensions).transform([text[:2000] for text in texts]).toarray()
        rows[:, 0] += 1e-3  # a text without words has a direction too
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


@cache
def _vectorizer(dimensions: int) -> Any:
    from sklearn.feature_extraction.text import HashingVectorizer

    return HashingVectorizer(n_features=dimensions, alternate_sign=False, norm=None, dtype=np.float32)
