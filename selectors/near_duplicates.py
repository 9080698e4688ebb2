"""Documents that repeat an earlier one, word for word or nearly so, in time that grows with their number."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skillarena.conf.errors import ConfigError
from skillarena.selectors.cache import digest

NEAR = 0.8
"""Similarity from which on two documents count as nearly the same."""
SHINGLE = 5
"""Words in a row that are compared."""

_BANDS, _ROWS = 20, 5
"""At similarity 0.8 two documents share all rows of one of 20 bands in 99.96 % of cases, at 0.4 in 19 %."""
_MOST_COMPARED = 32
"""Documents of one bucket that a new one is compared with: what keeps thousands of fillings of one template linear."""
_NOISE = 0.15
"""How far the estimate from a signature may fall short of the true similarity: three standard errors."""

_ONE_BY_ONE = r"\u3040-\u30ff\u3400-\u9fff"  # Japanese and Chinese put no space between words
_WORD = re.compile(rf"[{_ONE_BY_ONE}]|[^\W{_ONE_BY_ONE}]+")
_SEED = 20240601

Hashes = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A document that adds little or nothing."""

    index: int
    """Its place."""
    earlier: int
    """Place of the document it repeats: the first of this very text, or one that itself repeats none."""
    similarity: float
    """Jaccard similarity of their shingles; 1.0 for equal texts."""
    exact: bool
    """The texts are equal."""


def repeats(
    texts: Sequence[str], *, threshold: float = NEAR, progress: Callable[[int], object] = lambda count: None
) -> list[Repeat]:
    """The documents that repeat an earlier one, in order.

    Each document is compared with earlier ones that repeat none, found by MinHash signatures in bands; the similarity
    that counts is the true one, of the sets of all shingles of ``SHINGLE`` words in small letters.

    Args:
        texts: the documents.
        threshold: least similarity of a near-duplicate, above 0.5 (below, many pairs would be missed) and at most 1.
        progress: told how many documents are done since the last time.

    Raises:
        ConfigError: another threshold.
    """
    if not 0.5 < threshold <= 1:
        raise ConfigError(f"the similarity of near-duplicates is {threshold}", "give a number above 0.5 and at most 1")
    first_with: dict[bytes, int] = {}
    index = _Index(threshold)
    found = []
    for place, text in enumerate(texts):
        progress(1)
        earlier = first_with.setdefault(digest(text), place)
        if earlier != place:
            found.append(Repeat(place, earlier, 1.0, exact=True))
        elif (near := index.add(place, text)) is not None:
            found.append(Repeat(place, *near, exact=False))
    return found


class _Index:
    """Documents that repeat none, by the bands of their signatures."""

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold
        self._shingler = _Shingler()
        self._buckets: dict[int, list[int]] = {}
        self._shingles: dict[int, Hashes] = {}
        self._signatures: dict[int, NDArray[np.uint32]] = {}

    def add(self, place: int, text: str) -> tuple[int, float] | None:
        """The most similar earlier document and the similarity; None, and the document is kept, where there is none."""
        shingles = self._shingler.shingles(text)
        signature = self._shingler.signature(shingles)
        bands = self._shingler.bands(signature)
        near = self._nearest(shingles, signature, bands)
        if near is not None:
            return near
        self._shingles[place], self._signatures[place] = shingles, signature
        for band in bands:
            bucket = self._buckets.setdefault(band, [])
            if len(bucket) < _MOST_COMPARED:
                bucket.append(place)
        return None

    def _nearest(
        self, shingles: Hashes, signature: NDArray[np.uint32], bands: Iterable[int]
    ) -> tuple[int, float] | None:
        shared = Counter(place for band in bands for place in self._buckets.get(band, ()))
        best: tuple[int, float] | None = None
        for place, _ in shared.most_common(_MOST_COMPARED):
            if np.mean(self._signatures[place] == signature) < self._threshold - _NOISE:
                continue
            similarity = _jaccard(shingles, self._shingles[place])
            if similarity >= self._threshold and (best is None or similarity > best[1]):
                best = place, similarity
        return best


class _Shingler:
    """Texts to sets of hashed shingles, and those to MinHash signatures; every word gets a random number."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(_SEED)
        self._words: dict[str, int] = {}
        odd = np.uint64(1)
        size = _BANDS * _ROWS
        self._steps = self._random.integers(0, 2**64, size=SHINGLE, dtype=np.uint64) | odd
        self._factors = self._random.integers(0, 2**64, size=(size, 1), dtype=np.uint64) | odd
        self._mixers = self._random.integers(0, 2**64, size=_ROWS, dtype=np.uint64) | odd
        self._numbers: list[int] = []

    def shingles(self, text: str) -> Hashes:
        """uint64[n], sorted and distinct; a text of fewer words is one shingle."""
        words = np.array([self._number(word) for word in _WORD.findall(text.lower())], dtype=np.uint64)
        if len(words) < SHINGLE:
            words = np.pad(words, (0, SHINGLE - len(words)))
        count = len(words) - SHINGLE + 1
        hashes = np.zeros(count, dtype=np.uint64)
        for offset, step in enumerate(self._steps):
            hashes += words[offset : offset + count] * step
        return np.unique(hashes ^ (hashes >> np.uint64(29)))

    def signature(self, shingles: Hashes) -> NDArray[np.uint32]:
        """uint32[bands * rows]: for each of as many hash functions the least value over all shingles."""
        least: Hashes = (self._factors * shingles).min(axis=1)
        return (least >> np.uint64(32)).astype(np.uint32)

    def bands(self, signature: NDArray[np.uint32]) -> list[int]:
        """One number for each band, equal for documents whose rows there are equal."""
        mixed = (signature.reshape(_BANDS, _ROWS).astype(np.uint64) * self._mixers).sum(axis=1, dtype=np.uint64)
        band = np.arange(_BANDS, dtype=np.uint64)
        return [int(key) for key in (mixed & ~np.uint64(31)) | band]

    def _number(self, word: str) -> int:
        number = self._words.get(word)
        if number is None:
            if not self._numbers:
                self._numbers = self._random.integers(0, 2**64, size=4096, dtype=np.uint64).tolist()
            number = self._words[word] = self._numbers.pop()
        return number


def _jaccard(one: Hashes, other: Hashes) -> float:
    common = len(np.intersect1d(one, other, assume_unique=True))
    return common / (len(one) + len(other) - common)
