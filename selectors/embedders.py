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
from skillarena.selectors.options import DTYPES, check_choice, check_counts, check_optional_counts

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from torch.nn import Module
    from transformers import PreTrainedTokenizerBase


class SentenceTransformerEmbedder:
    """Any sentence-transformers model, and any encoder that keeps a text's meaning in its last token.

    Models of the second kind (Qwen3-Embedding and what was trained from it) are often published without the files by
    which sentence-transformers knows how to pool, and would be averaged over all tokens without a word. Naming their
    ``end_token`` sets up last-token pooling and unit length whatever files there are.

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
        end_token: the token that the model's tokenizer puts at the end of every text, a cut one too, and that is
            taken as the text's vector; None for models that say themselves how they pool.
        dtype: of weights and activations: ``float32``, ``bfloat16`` or ``float16``.

    Raises ``RerankerError`` when a package or the model is missing, ``ConfigError`` for a value that makes no sense.
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
        end_token: str | None = None,
        dtype: str = "float32",
    ) -> None:
        check_counts(batch_size=batch_size)
        check_optional_counts(max_length=max_length)
        check_choice("dtype", dtype, DTYPES)
        marker = "config.json" if end_token else "modules.json"
        self._checkpoint = find_checkpoint(model, revision=revision, marker=marker)
        self._batch_size = batch_size
        self._device = device
        self._prompts = {"query": query_prompt, "document": document_prompt}
        self._max_length = max_length
        self._end_token = end_token
        self._dtype = dtype
        self.identity = (
            f"{self._checkpoint.identity} query={query_prompt!r} document={document_prompt!r}"
            f" max_length={max_length} end={end_token!r} dtype={dtype}"
        )

    def encode(self, texts: Sequence[str], kind: Literal["query", "document"]) -> NDArray[np.float32]:
        """float32[n, d], rows of unit length. Raises ``RerankerError`` when the model cannot be loaded or run."""
        model = self._model
        encode = model.encode_query if kind == "query" else model.encode_document
        # An empty list tells no dimension, hence one text more than asked for.
        asked = list(texts) or [""]
        try:
            vectors = encode(asked, prompt=self._prompts[kind], batch_size=self._batch_size, show_progress_bar=False)
        except (RuntimeError, IndexError) as error:
            raise RerankerError(
                f"{self.identity} cannot encode {len(asked)} texts: {error}",
                "lower embedder.batch_size or embedder.max_length, or use embedder.device=cpu",
            ) from error
        rows = np.asarray(vectors, dtype=np.float32)[: len(texts)]
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)  # in float32, whatever the model computes in
        if not (np.isfinite(lengths).all() and (lengths > 0).all()):
            raise RerankerError(f"{self.identity} gives infinite, undefined or empty vectors", "use another model")
        return np.asarray(rows / lengths, dtype=np.float32)

    @cached_property
    def _model(self) -> SentenceTransformer:
        with loading(self._checkpoint, "embedder"):
            import torch
            from sentence_transformers import SentenceTransformer

            if self._end_token:
                model = SentenceTransformer(modules=self._modules(), device=self._device)
            else:
                model = SentenceTransformer(
                    self._checkpoint.location,
                    revision=self._checkpoint.revision,
                    device=self._device,
                    trust_remote_code=False,
                    model_kwargs=SAFE_WEIGHTS,
                )
            model = model.to(getattr(torch, self._dtype))
        if self._max_length is not None:
            model.max_seq_length = self._max_length
        if self._end_token:
            _check_end(model.tokenizer, self._end_token, self._max_length, self.identity)
        return model

    def _modules(self) -> list[Module]:
        """The network and last-token pooling."""
        from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

        source = {"revision": self._checkpoint.revision, "trust_remote_code": False}
        network = Transformer(
            self._checkpoint.location,
            model_kwargs={**source, **SAFE_WEIGHTS},
            processor_kwargs={**source, "padding_side": "left"},
            config_kwargs=source,
        )
        return [network, Pooling(network.get_embedding_dimension(), "lasttoken")]


def _check_end(tokenizer: PreTrainedTokenizerBase, end: str, max_length: int | None, identity: str) -> None:
    """Without its end token, the last token of a text is any word, and its vector says little about the text."""
    long = "word " * (max_length or 1)
    for text in ("a", long):
        last = tokenizer(text, truncation=max_length is not None, max_length=max_length)["input_ids"][-1]
        if last != tokenizer.convert_tokens_to_ids(end):
            raise RerankerError(
                f"{identity} ends {'a cut text' if text is long else 'a text'} with"
                f" {tokenizer.convert_ids_to_tokens(last)!r}, not with {end!r}",
                "correct embedder.end_token, or use a tokenizer.json whose post-processor adds that token",
            )


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
