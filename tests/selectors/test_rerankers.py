"""Rerankers give raw logits, whatever a model's configuration says, and score nothing twice."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from reranker_contract import DOCUMENTS, PAIRS, QUERIES, RerankerContract
from tiny_cross_encoder import make_cross_encoder
from word_embedder import WordEmbedder

from skillarena.conf.errors import ConfigError, RerankerError
from skillarena.selectors.cache import DiskCache
from skillarena.selectors.embedders import SentenceTransformerEmbedder
from skillarena.selectors.interface import Reranker
from skillarena.selectors.rerankers import CachedReranker, CrossEncoderReranker, SimilarityReranker

MakeCheckpoint = Callable[..., Path]


@pytest.fixture(scope="session")
def make_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> MakeCheckpoint:
    """Saves a small BERT with random weights whose configuration asks for a sigmoid."""

    def make(*, labels: int = 1, kind: str = "BertForSequenceClassification", safe: bool = True) -> Path:
        return make_cross_encoder(tmp_path_factory.mktemp("checkpoint") / "tiny", labels=labels, kind=kind, safe=safe)

    return make


@pytest.fixture(scope="session")
def cross_encoder(make_checkpoint: MakeCheckpoint) -> CrossEncoderReranker:
    return CrossEncoderReranker(model=str(make_checkpoint()), batch_size=4, device="cpu")


@pytest.fixture(scope="module")
def minilm() -> SentenceTransformerEmbedder:
    return SentenceTransformerEmbedder(model="minilm", device="cpu")


class TestSimilarityContract(RerankerContract):
    @pytest.fixture
    def reranker(self) -> Reranker:
        return SimilarityReranker(embedder=WordEmbedder(), scale=25.0, threshold=0.15)


@pytest.mark.slow
class TestSimilarityOfMiniLMContract(RerankerContract):
    @pytest.fixture
    def reranker(self, minilm: SentenceTransformerEmbedder) -> Reranker:
        return SimilarityReranker(embedder=minilm, scale=25.0, threshold=0.3)


@pytest.mark.slow
class TestCrossEncoderContract(RerankerContract):
    @pytest.fixture
    def reranker(self, cross_encoder: CrossEncoderReranker) -> Reranker:
        return cross_encoder


class TestCachedContract(RerankerContract):
    @pytest.fixture
    def reranker(self, tmp_path: Path) -> Reranker:
        inner = SimilarityReranker(embedder=WordEmbedder(), scale=25.0, threshold=0.15)
        return CachedReranker(inner, DiskCache(tmp_path / "scores.sqlite"))


@pytest.mark.slow
class TestCachedCrossEncoderContract(RerankerContract):
    @pytest.fixture
    def reranker(self, cross_encoder: CrossEncoderReranker, tmp_path: Path) -> Reranker:
        return CachedReranker(cross_encoder, DiskCache(tmp_path / "scores.sqlite"))


class CountingReranker:
    """Scores a pair by its lengths and keeps a record."""

    identity = "lengths"

    def __init__(self) -> None:
        self.calls: list[list[tuple[str, str]]] = []

    def score(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        self.calls.append(list(pairs))
        return np.array([len(query) - len(document) / 7 for query, document in pairs], dtype=np.float32)


def test_similarity_is_an_affine_function_of_the_cosine() -> None:
    embedder = WordEmbedder()
    reranker = SimilarityReranker(embedder=embedder, scale=10.0, threshold=0.25)
    cosines = [float(embedder.encode([q], "query")[0] @ embedder.encode([d], "document")[0]) for q, d in PAIRS]
    np.testing.assert_allclose(reranker.score(PAIRS), [10 * (cosine - 0.25) for cosine in cosines], rtol=1e-5)


def test_similarity_embeds_each_text_once() -> None:
    embedder = WordEmbedder()
    SimilarityReranker(embedder=embedder, scale=1.0, threshold=0.0).score(PAIRS * 2)
    assert sorted(embedder.asked) == sorted([*QUERIES, *DOCUMENTS])


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan])
def test_a_scale_that_is_not_positive_is_refused(scale: float) -> None:
    with pytest.raises(ConfigError, match="scale must be positive"):
        SimilarityReranker(embedder=WordEmbedder(), scale=scale, threshold=0.0)


def test_identities_tell_every_setting_apart() -> None:
    identities = {
        SimilarityReranker(embedder=WordEmbedder(words), scale=scale, threshold=threshold).identity
        for words in ("words", "other")
        for scale in (1.0, 2.0)
        for threshold in (0.0, 0.1)
    }
    assert len(identities) == 8


def test_a_second_run_scores_nothing(tmp_path: Path) -> None:
    inner = CountingReranker()
    first = CachedReranker(inner, DiskCache(tmp_path / "scores.sqlite"))
    scores = first.score([*PAIRS, *PAIRS[:3]])
    assert (first.scored, first.cached) == (len(PAIRS), 0)
    assert inner.calls == [PAIRS]
    second = CachedReranker(inner, DiskCache(tmp_path / "scores.sqlite"))
    assert (second.score([*PAIRS, *PAIRS[:3]]) == scores).all()
    assert (second.scored, second.cached) == (0, len(PAIRS))
    assert inner.calls == [PAIRS]


def test_only_what_is_missing_is_scored_and_counted(tmp_path: Path) -> None:
    inner = CountingReranker()
    reranker = CachedReranker(inner, DiskCache(tmp_path / "scores.sqlite"))
    reranker.score(PAIRS[:4])
    scores = reranker.score(PAIRS[2:7])
    assert inner.calls == [PAIRS[:4], PAIRS[4:7]]
    assert (reranker.scored, reranker.cached) == (7, 2)
    assert (scores == CountingReranker().score(PAIRS[2:7])).all()


def test_scores_of_one_reranker_are_not_taken_for_anothers(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "scores.sqlite")
    plain = SimilarityReranker(embedder=WordEmbedder(), scale=1.0, threshold=0.0)
    steep = SimilarityReranker(embedder=WordEmbedder(), scale=2.0, threshold=0.0)
    assert (CachedReranker(plain, cache).score(PAIRS) * 2 == CachedReranker(steep, cache).score(PAIRS)).all()


def test_a_failing_reranker_leaves_nothing_behind(tmp_path: Path) -> None:
    class Broken(CountingReranker):
        def score(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
            raise RerankerError("no")

    reranker = CachedReranker(Broken(), DiskCache(tmp_path / "scores.sqlite"))
    with pytest.raises(RerankerError):
        reranker.score(PAIRS)
    assert (reranker.scored, reranker.cached) == (0, 0)
    working = CachedReranker(CountingReranker(), DiskCache(tmp_path / "scores.sqlite"))
    working.score(PAIRS)
    assert working.scored == len(PAIRS)


@pytest.mark.slow
def test_a_sigmoid_in_the_models_configuration_is_not_applied(
    make_checkpoint: MakeCheckpoint, cross_encoder: CrossEncoderReranker
) -> None:
    import torch
    import transformers
    from sentence_transformers import CrossEncoder

    folder = make_checkpoint()
    scores = cross_encoder.score(PAIRS)
    squashed = CrossEncoder(str(folder), device="cpu").predict(PAIRS)
    np.testing.assert_allclose(squashed, 1 / (1 + np.exp(-scores.astype(np.float64))), atol=1e-5)

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    with torch.no_grad():
        encoded = tokenizer(*zip(*PAIRS, strict=True), padding=True, truncation=True, return_tensors="pt")
        np.testing.assert_allclose(scores, model(**encoded).logits[:, 0].numpy(), atol=1e-4)


@pytest.mark.slow
def test_text_beyond_max_length_has_no_influence(make_checkpoint: MakeCheckpoint) -> None:
    short = CrossEncoderReranker(model=str(make_checkpoint()), device="cpu", max_length=12)
    text = "one two three four five six seven eight nine ten eleven twelve"
    assert short.score([("a", text)]) == short.score([("a", text + " thirteen fourteen")])
    assert short.score([("a", text)]) != short.score([("a", "zero " + text)])


@pytest.mark.slow
def test_a_checkpoints_identity_follows_its_content_and_not_its_place(
    make_checkpoint: MakeCheckpoint, tmp_path: Path
) -> None:
    first, second = (CrossEncoderReranker(model=str(make_checkpoint())) for _ in range(2))
    assert first.identity == second.identity
    changed = make_checkpoint()
    config = json.loads((changed / "config.json").read_text())
    (changed / "config.json").write_text(json.dumps({**config, "hidden_act": "relu"}))
    assert CrossEncoderReranker(model=str(changed)).identity != first.identity
    assert CrossEncoderReranker(model=str(make_checkpoint()), max_length=9).identity != first.identity


@pytest.mark.slow
def test_unsuitable_checkpoints_are_refused_by_name(make_checkpoint: MakeCheckpoint, tmp_path: Path) -> None:
    with pytest.raises(RerankerError, match="no cross-encoder: its architecture is BertModel"):
        CrossEncoderReranker(model=str(make_checkpoint(kind="BertModel")))
    with pytest.raises(RerankerError, match="no cross-encoder: its architecture is BertModel"):
        CrossEncoderReranker(model="minilm")
    with pytest.raises(RerankerError, match="has 3 labels, not 1"):
        CrossEncoderReranker(model=str(make_checkpoint(labels=3)), device="cpu").score(PAIRS)
    with pytest.raises(RerankerError, match="cannot be loaded"):
        CrossEncoderReranker(model=str(make_checkpoint(safe=False)), device="cpu").score(PAIRS)
    with pytest.raises(RerankerError, match="cannot be loaded"):
        CrossEncoderReranker(model=str(make_checkpoint()), device="abacus").score(PAIRS)


@pytest.mark.slow
def test_scores_that_are_no_numbers_are_an_error(make_checkpoint: MakeCheckpoint) -> None:
    import safetensors.torch

    folder = make_checkpoint()
    weights = safetensors.torch.load_file(folder / "model.safetensors")
    weights["classifier.bias"][:] = math.nan
    safetensors.torch.save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(RerankerError, match="infinite or undefined"):
        CrossEncoderReranker(model=str(folder), device="cpu").score(PAIRS)


def test_wrong_options_are_refused_before_anything_is_loaded() -> None:
    with pytest.raises(ConfigError, match="batch_size must be a whole number"):
        CrossEncoderReranker(model="minilm", batch_size=0)
    with pytest.raises(ConfigError, match="max_length must be a whole number"):
        CrossEncoderReranker(model="minilm", max_length=-1)
