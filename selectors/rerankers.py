"""Relevance of documents to queries, as raw logits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from skillarena.conf.errors import ConfigError, RerankerError
from skillarena.selectors.cache import DiskCache, cached_rows, digest
from skillarena.selectors.checkpoint import SAFE_WEIGHTS, Checkpoint, architecture, find_checkpoint, loading
from skillarena.selectors.interface import Embedder, Reranker
from skillarena.selectors.options import check_counts, check_optional_counts

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

Pair = tuple[str, str]

_MOST_SECTIONS = 1000
_HEADING = re.compile(r"^(?=#{1,6}[ \t])", re.MULTILINE)


class SimilarityReranker:
    """A cheap stand-in for a cross-encoder: logit = scale · (cosine − threshold).

    A document counts with the section that is nearest to the query, as one vector of a whole document blurs it and
    embedders read only so many tokens. It tells topics apart and little else, so its results say nothing about a real
    cross-encoder's. Scale 25 and threshold 0.38 suit MiniLM: for 60 ALFWorld training goals and the skills recalled for
    each, the best, second, third and fifth skill have median cosines 0.50, 0.43, 0.40, 0.36 in the bundled library and
    0.42, 0.37, 0.35, 0.32 among 632 public skills, hence relevances 0.96, 0.78, 0.65, 0.36 and 0.73, 0.44, 0.30, 0.17:
    roughly what the paper's worked cases (figure 4) show for a trained cross-encoder. Other embedders need values of
    their own.

    Args:
        embedder: gives the vectors of queries and documents.
        scale: logits for each unit of cosine.
        threshold: the cosine that counts as relevance 0.5.
    """

    def __init__(self, *, embedder: Embedder, scale: float, threshold: float) -> None:
        if not scale > 0:
            raise ConfigError(f"reranker.scale must be positive, got {scale}", "set reranker.scale above 0")
        self._embedder = embedder
        self._scale = scale
        self._threshold = threshold
        self.identity = f"similarity of sections scale={scale} threshold={threshold} of {embedder.identity}"

    def score(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """float32[n] logits. Raises ``RerankerError``."""
        if not pairs:
            return np.empty(0, dtype=np.float32)
        queries = self._vectors([query for query, _ in pairs], "query")
        cosines = np.empty(len(pairs))
        parts = [_sections(document) for _, document in pairs]
        vectors = self._vectors([section for sections in parts for section in sections], "document")
        ends = np.cumsum([len(sections) for sections in parts])
        for row, own in enumerate(np.split(vectors, ends[:-1])):
            cosines[row] = (own @ queries[row]).max()
        return np.asarray(self._scale * (cosines - self._threshold), dtype=np.float32)

    def _vectors(self, texts: list[str], kind: Literal["query", "document"]) -> NDArray[np.float32]:
        rows = {text: row for row, text in enumerate(dict.fromkeys(texts))}
        return self._embedder.encode(list(rows), kind)[[rows[text] for text in texts]]


def _sections(document: str) -> list[str]:
    """Parts that begin at a Markdown heading; a text without headings is one part, and so is all behind the 1,000th."""
    return [part.strip() for part in _HEADING.split(document, _MOST_SECTIONS) if part.strip()] or [""]


class CrossEncoderReranker:
    """Any sequence-classification checkpoint with one label, in float32.

    The weights are loaded at the first pair. Not thread-safe.

    Args:
        model: a folder or a hub id.
        batch_size: pairs in one forward pass.
        device: ``cpu``, ``cuda``, ``cuda:1``, …; None takes the best there is.
        revision: branch, tag or commit on the hub.
        max_length: tokens kept of a pair, the longer text being cut first; None takes the model's own limit.

    Raises ``RerankerError`` when a package or the model is missing, or the model does not classify pairs;
    ``ConfigError`` for a count below 1.
    """

    def __init__(
        self,
        *,
        model: str,
        batch_size: int = 32,
        device: str | None = None,
        revision: str | None = None,
        max_length: int | None = None,
    ) -> None:
        check_counts(batch_size=batch_size)
        check_optional_counts(max_length=max_length)
        self._checkpoint = find_checkpoint(model, revision=revision, marker="config.json")
        _check_is_classifier(self._checkpoint)
        self._batch_size = batch_size
        self._device = device
        self._max_length = max_length
        self.identity = f"cross-encoder {self._checkpoint.identity} max_length={max_length}"

    def score(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """float32[n] logits; equal pairs are scored once. Raises ``RerankerError``."""
        if not pairs:
            return np.empty(0, dtype=np.float32)
        # Neighbours of like length waste little on padding; the rest of the key makes batches independent of order.
        distinct = sorted(set(pairs), key=lambda pair: (-len(pair[0]) - len(pair[1]), pair))
        logits = self._logits(distinct)
        rows = {pair: row for row, pair in enumerate(distinct)}
        return logits[[rows[pair] for pair in pairs]]

    def _logits(self, pairs: list[Pair]) -> NDArray[np.float32]:
        model = self._model
        try:
            logits = model.predict(pairs, batch_size=self._batch_size, show_progress_bar=False)
        except (RuntimeError, IndexError) as error:
            raise RerankerError(
                f"{self.identity} cannot score {len(pairs)} pairs: {error}",
                "lower reranker.batch_size or reranker.max_length, or use reranker.device=cpu",
            ) from error
        if not np.isfinite(logits).all():
            raise RerankerError(f"{self.identity} gives infinite or undefined scores", "use another model")
        return np.asarray(logits, dtype=np.float32)

    @cached_property
    def _model(self) -> CrossEncoder:
        with loading(self._checkpoint, "reranker"):
            from sentence_transformers import CrossEncoder
            from torch.nn import Identity

            model: CrossEncoder = CrossEncoder(
                self._checkpoint.location,
                revision=self._checkpoint.revision,
                device=self._device,
                max_length=self._max_length,
                activation_fn=Identity(),  # else the model's configuration or the library may squash scores
                trust_remote_code=False,
                model_kwargs=SAFE_WEIGHTS,
            ).float()
        if model.num_labels != 1:
            raise RerankerError(
                f"{self._checkpoint.identity} has {model.num_labels} labels, not 1",
                "use a model that gives one relevance score for a pair",
            )
        return model


def _check_is_classifier(checkpoint: Checkpoint) -> None:
    """Loading any other checkpoint would put an untrained head on it without a word."""
    kind = architecture(checkpoint)
    if kind.startswith("Qwen3"):
        raise RerankerError(
            f"{checkpoint.identity} is no cross-encoder: {kind} reads a prompt, not a bare pair",
            "use reranker=qwen3_reranker_0_6b with this model",
        )
    if not kind.endswith("ForSequenceClassification"):
        raise RerankerError(
            f"{checkpoint.identity} is no cross-encoder: its architecture is {kind}",
            "use a sequence-classification checkpoint, or the similarity reranker with this model as embedder",
        )


class CachedReranker:
    """A reranker whose scores outlive the process.

    Args:
        reranker: scores pairs that are not in the cache, each once.
        cache: where scores are kept.
    """

    def __init__(self, reranker: Reranker, cache: DiskCache) -> None:
        self.identity = reranker.identity
        self.scored = 0
        """Pairs the model scored; a pair that occurs several times in one call counts once."""
        self.cached = 0
        """Pairs the cache answered, counted likewise."""
        self._reranker = reranker
        self._cache = cache

    def score(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """float32[n] logits, read-only. Raises ``RerankerError``."""
        if not pairs:
            return self._reranker.score(pairs)
        keys = [digest("score", self.identity, *pair) for pair in pairs]
        rows, computed = cached_rows(self._cache, keys, pairs, self._reranker.score)
        self.scored += computed
        self.cached += len(set(keys)) - computed
        return rows[:, 0]
