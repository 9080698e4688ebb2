"""An embedder in a few lines, for tests that need vectors and no model: each word counts in one of many dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal
from zlib import crc32

import numpy as np
from numpy.typing import NDArray


class WordEmbedder:
    """Texts that share words are similar. Records what it was asked for."""

    def __init__(self, identity: str = "words", dimensions: int = 256) -> None:
        self.identity = identity
        self.asked: list[str] = []
        self._dimensions = dimensions

    def encode(self, texts: Sequence[str], kind: Literal["query", "document"]) -> NDArray[np.float32]:
        self.asked += texts
        rows = np.zeros((len(texts), self._dimensions), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            row[0] = 0.1  # a text without words has a direction too
            for word in text.lower().split()[:1000]:
                row[1 + crc32(word.encode()) % (self._dimensions - 1)] += 1
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)
