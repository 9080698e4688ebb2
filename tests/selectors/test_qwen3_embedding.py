"""Encoders that keep a text's meaning in its last token give that token's vector, whatever files they come with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from reranker_contract import DOCUMENTS, QUERIES
from tiny_qwen3 import make_encoder

from skillarena.conf.errors import ConfigError, RerankerError
from skillarena.selectors.embedders import SentenceTransformerEmbedder

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_thread")]

END = "<|endoftext|>"
TASK = "Instruct: Given a task description, retrieve the skill that helps\nQuery:"
LONG = "word " * 900
TOLERANCE = 1e-4


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_encoder(tmp_path_factory.mktemp("encoder"))


def make(folder: Path, **changes: Any) -> SentenceTransformerEmbedder:
    options = {"device": "cpu", "end_token": END, "max_length": 128, "query_prompt": TASK, "document_prompt": ""}
    return SentenceTransformerEmbedder(model=str(folder), **{**options, **changes})  # type: ignore[arg-type]


def by_hand(folder: Path, texts: Sequence[str], max_length: int) -> NDArray[np.float32]:
    """Vectors worked out text by text, without padding: the last token's, made one long."""
    import torch
    from transformers import AutoTokenizer, Qwen3Model

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = Qwen3Model.from_pretrained(folder).eval()
    vectors = []
    for text in texts:
        ids = tokenizer(text, truncation=True, max_length=max_length, return_tensors="pt")["input_ids"]
        assert ids[0, -1] == tokenizer.convert_tokens_to_ids(END)
        assert ids.shape[1] <= max_length
        with torch.no_grad():
            last = model(ids).last_hidden_state[0, -1]
        vectors.append((last / last.norm()).numpy())
    return np.array(vectors)


def test_vectors_are_those_of_the_end_token_worked_out_alone(encoder: Path) -> None:
    embedder = make(encoder)
    documents = [*DOCUMENTS, LONG, "", "把杯子放进微波炉 ☕"]
    vectors = embedder.encode(documents, "document")
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(vectors, by_hand(encoder, documents, 128), atol=TOLERANCE)


def test_queries_follow_their_prompt_without_a_space(encoder: Path) -> None:
    expected = by_hand(encoder, [f"{TASK}{query}" for query in QUERIES], 128)
    np.testing.assert_allclose(make(encoder).encode(QUERIES, "query"), expected, atol=TOLERANCE)


def test_company_and_order_do_not_matter(encoder: Path) -> None:
    embedder = make(encoder, batch_size=3)
    texts = [*DOCUMENTS, *QUERIES, LONG]
    together = embedder.encode(texts, "document")
    alone = np.concatenate([embedder.encode([text], "document") for text in texts])
    np.testing.assert_allclose(alone, together, atol=TOLERANCE)
    np.testing.assert_allclose(embedder.encode(texts[::-1], "document")[::-1], together, atol=TOLERANCE)


def test_with_the_files_of_sentence_transformers_it_is_the_same_model(encoder: Path, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

    network = Transformer(str(encoder))
    whole = SentenceTransformer(modules=[network, Pooling(64, "lasttoken"), Normalize()], device="cpu")
    whole.save(str(tmp_path))
    assert (tmp_path / "modules.json").is_file()
    expected = make(encoder).encode(DOCUMENTS, "document")
    np.testing.assert_allclose(make(tmp_path).encode(DOCUMENTS, "document"), expected, atol=TOLERANCE)
    own_way = make(tmp_path, end_token=None)
    np.testing.assert_allclose(own_way.encode(DOCUMENTS, "document"), expected, atol=TOLERANCE)


def test_left_to_itself_the_library_would_average_over_all_tokens(encoder: Path) -> None:
    from sentence_transformers import SentenceTransformer

    averaged = SentenceTransformer(str(encoder), device="cpu").encode(list(DOCUMENTS), normalize_embeddings=True)
    assert np.abs(averaged - make(encoder).encode(DOCUMENTS, "document")).max() > 0.1
    with pytest.raises(RerankerError, match=r"modules\.json is missing"):
        make(encoder, end_token=None)


def test_a_tokenizer_that_forgets_the_end_token_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RerankerError, match=r"ends a text with 'a', not with '<\|endoftext\|>'"):
        make(make_encoder(tmp_path, end_token=False)).encode(QUERIES, "query")


def test_another_end_token_than_the_models_is_refused(encoder: Path) -> None:
    with pytest.raises(RerankerError, match=r"ends a text with '<\|endoftext\|>', not with '<\|im_end\|>'"):
        make(encoder, end_token="<|im_end|>").encode(QUERIES, "query")


def test_half_precision_still_gives_unit_vectors(encoder: Path) -> None:
    half, exact = make(encoder, dtype="bfloat16"), make(encoder)
    assert half.identity != exact.identity
    vectors = half.encode(DOCUMENTS, "document")
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    cosines = (vectors * exact.encode(DOCUMENTS, "document")).sum(axis=1)
    assert (cosines > 0.99).all()
    with pytest.raises(ConfigError, match="did you mean 'float32'"):
        make(encoder, dtype="float23")
