"""Texts to unit vectors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from skillarena.conf.errors import RerankerError
from skillarena.selectors.cache import DiskCache, cached_rows, digest
from skillarena.selectors.checkpoint import SAFE_WEIGHTS, find_checkpoint, loading
from skillarena.selectors.interface import Embedder
from skillarena.selectors.options import check_counts

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


class SentenceTransformerEmbedder:
    """Any sentence-transformers model, in float32.

    The weights are loaded at the first text. On CPUs the number of threads is PyTorch's (``OMP_NUM_THREADS``).
    Not thread-safe.

    Args:
        model: a folder, a hub id, or ``minilm``.
        batch_size: texts in one forward pass.
        device: ``cpu``, ``cuda``, ``cuda:1``, …; None takes the best there is.
        revision: branch, tag or commit on the hub.
        query_prompt: text put before every query; None takes the model's own, if it has one.
        document_prompt: likewise for documents.
        max_length: tokens kept of a text; None takes the model's own limit.

    Raises ``RerankerError`` when a package or the model is missing, ``ConfigError`` for a count below 1.
    """

    def __init__(
        self,
        *,
        model: str,
        batch_size: int = 64,
        device: str | None = None,
        revision: str | None = None,
        query_prompt: str | None = None,
        document_prompt: str | None = None,
        max_length: int | None = None,
    ) -> None:
        check_counts(batch_size=batch_size, max_length=max_length)
        self._checkpoint = find_checkpoint(model, revision=revision, marker="modules.json")
        self._batch_size = batch_size
        self._device = device
        self._prompts = {"query": query_prompt, "document": document_prompt}
        self._max_length = max_length
        self.identity = (
            f"{self._checkpoint.identity} query={query_prompt!r} document={document_prompt!r} max_length={max_length}"
        )

    def encode(self, texts: Sequence[str], kind: Literal["query", "document"]) -> NDArray[np.float32]:
        """float32[n, d], rows of unit length. Raises ``RerankerError`` when the model cannot be loaded or run."""
        model = self._model
        encode = model.encode_query if kind == "query" else model.encode_document
        # An empty list tells no dimension, hence one text more than asked for.
        asked = list(texts) or [""]
        try:
            vectors = encode(
                asked,
                prompt=self._prompts[kind],
                batch_size=self._batch_size,
                normalize_embeddings=True,
                show_progress_bar=False,
            )
        except (RuntimeError, IndexError) as error:
            raise RerankerError(
                f"{self.identity} cannot encode {len(asked)} texts: {error}",
                "lower embedder.batch_size or embedder.max_length, or use embedder.device=cpu",
            ) from error
        rows = np.asarray(vectors, dtype=np.float32)[: len(texts)]
        if not np.isfinite(rows).all():
            raise RerankerError(f"{self.identity} gives infinite or undefined numbers", "use another model")
        return rows

    @cached_property
    def _model(self) -> SentenceTransformer:
        with loading(self._checkpoint, "embedder"):
            from sentence_transformers import SentenceTransformer

            model = SentenceTransformer(
                self._checkpoint.location,
                revision=self._checkpoint.revision,
                device=self._device,
                trust_remote_code=False,
                model_kwargs=SAFE_WEIGHTS,
            ).float()
        if self._max_length is not None:
            model.max_seq_length = self._max_length
        return model


class CachedEmbedder:
    """An embedder whose vectors outlive the process.

    Args:
        embedder: encodes texts that are not in the cache, each once.
        cache: where vectors are kept.
    """

    def __init__(self, embedder: Embedder, cache: DiskCache) -> None:
        self.identity = embedder.identity
        self._embedder = embedder
        self._cache = cache

    def encode(self, texts: Sequence[str], kind: Literal["query", "document"]) -> NDArray[np.float32]:
        """float32[n, d], rows of unit length, read-only. Raises ``RerankerError``."""
        if not texts:
            return self._embedder.encode(texts, kind)
        keys = [digest("vector", self.identity, kind, text) for text in texts]
        rows, _ = cached_rows(self._cache, keys, texts, lambda missing: self._embedder.encode(missing, kind))
        return rows
