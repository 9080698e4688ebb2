"""A real vLLM on the CPU scores and embeds as the models in this process do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from reranker_contract import DOCUMENTS, PAIRS, QUERIES, TOLERANCE
from tiny_qwen3 import (
    INSTRUCTION,
    MAX_LENGTH,
    by_hand,
    make_causal,
    make_classifier,
    make_encoder,
    reference_of,
)

from skillarena.conf.errors import RerankerError
from skillarena.orchestration.serving.vllm_process import ServerProcess
from skillarena.orchestration.serving.vllm_spec import ServerSpec
from skillarena.selectors.embedders import SentenceTransformerEmbedder
from skillarena.selectors.qwen3_prompt import PREFIX, SUFFIX
from skillarena.selectors.qwen3_reranker import Qwen3Reranker
from skillarena.selectors.vllm_pooling import VllmPoolingReranker

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(900)]

ORIGINAL = {
    "architectures": ["Qwen3ForSequenceClassification"],
    "classifier_from_token": ["no", "yes"],
    "is_original_qwen3_reranker": True,
}
START_S = 600
KEY = "a key for this test"


@contextmanager
def serving(model: Path, log: Path, **options: Any) -> Iterator[str]:
    """The URL of a server of ``model``."""
    spec = ServerSpec(
        model=str(model),
        served_name="tiny",
        device="cpu",
        num_cpus=1,
        dtype="float32",
        max_model_len=1024,
        kv_cache_gib=1,
        runner="pooling",
        **options,
    )
    server = ServerProcess(spec, location=str(model), host="127.0.0.1", key=KEY, log=log)
    try:
        server.start(START_S)
        yield server.url.removesuffix("/v1")
    finally:
        server.stop()


def ask(url: str, path: str, body: dict[str, Any]) -> Any:
    response = httpx.post(
        url + path, json={"model": "tiny", **body}, headers={"Authorization": f"Bearer {KEY}"}, timeout=120
    )
    response.raise_for_status()
    return response.json()["data"]


@pytest.fixture(scope="module")
def causal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_causal(tmp_path_factory.mktemp("causal"))


@pytest.fixture(scope="module")
def options(causal: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return {
        "instruction": INSTRUCTION,
        "separator": "newline",
        "max_length": MAX_LENGTH,
        "reference": reference_of(tmp_path_factory.mktemp("reference"), causal),
    }


@pytest.fixture(scope="module")
def original(causal: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(causal, tmp_path_factory.mktemp("log") / "original.log", hf_overrides=ORIGINAL) as url:
        yield url


@pytest.fixture
def remote(
    causal: Path, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., VllmPoolingReranker]:
    monkeypatch.setenv("TINY_KEY", KEY)

    def make(url: str, **changes: Any) -> VllmPoolingReranker:
        own = {"model": str(causal), "base_url": url, "served_name": "tiny", "api_key_env": "TINY_KEY"}
        return VllmPoolingReranker(**{**options, **own, **changes})

    return make


Remote = Callable[..., VllmPoolingReranker]


def local(model: Path, options: dict[str, Any], **changes: Any) -> Qwen3Reranker:
    return Qwen3Reranker(**{**options, "model": str(model), "dtype": "float32", "device": "cpu", **changes})


def test_an_original_checkpoint_scores_as_it_does_here(
    original: str, causal: Path, options: dict[str, Any], remote: Remote
) -> None:
    scores = remote(original).score(PAIRS)
    np.testing.assert_allclose(scores, by_hand(causal, PAIRS), atol=TOLERANCE)
    np.testing.assert_allclose(scores, local(causal, options).score(PAIRS), atol=TOLERANCE)


def test_cut_pairs_score_as_they_do_here(original: str, causal: Path, options: dict[str, Any], remote: Remote) -> None:
    long = [(QUERIES[0], DOCUMENTS[0] * 30), (QUERIES[1] * 60, DOCUMENTS[1]), (QUERIES[2], "word " * 3000)]
    for max_length in (MAX_LENGTH, 200):
        scores = remote(original, max_length=max_length).score(long)
        np.testing.assert_allclose(scores, local(causal, options, max_length=max_length).score(long), atol=TOLERANCE)


def test_a_wrong_prompt_is_found_out(original: str, remote: Remote) -> None:
    with pytest.raises(RerankerError, match="another prompt"):
        remote(original, separator="blank_line").score(PAIRS)


def test_left_to_itself_the_server_squashes_scores_and_knows_no_prompt(
    original: str, causal: Path, remote: Remote
) -> None:
    """Why scores are asked for in the way they are."""
    logits = remote(original).score(PAIRS).astype(np.float64)
    queries, documents = zip(*PAIRS, strict=True)
    rows = ask(original, "/score", {"queries": list(queries), "documents": list(documents)})
    plain = np.array([row["score"] for row in rows])
    assert ((plain >= 0) & (plain <= 1)).all()
    assert np.abs(plain - 1 / (1 + np.exp(-logits))).max() > 0.01
    prompted = {
        "queries": [f"{PREFIX}<Instruct>: {INSTRUCTION}\n<Query>: {query}\n" for query in queries],
        "documents": [f"<Document>: {document}{SUFFIX}" for document in documents],
    }
    rows = ask(original, "/score", {**prompted, "use_activation": False})
    np.testing.assert_allclose([row["score"] for row in rows], logits, atol=TOLERANCE)
    rows = ask(original, "/score", prompted)
    np.testing.assert_allclose([row["score"] for row in rows], 1 / (1 + np.exp(-logits)), atol=TOLERANCE)


def test_a_conversion_to_a_classifier_scores_the_same(causal: Path, remote: Remote, tmp_path: Path) -> None:
    converted = make_classifier(tmp_path / "model", causal)
    with serving(converted, tmp_path / "log") as url:
        np.testing.assert_allclose(remote(url).score(PAIRS), by_hand(causal, PAIRS), atol=TOLERANCE)


def test_an_encoder_embeds_as_it_does_here(tmp_path: Path) -> None:
    encoder = make_encoder(tmp_path / "model")
    prompt = "Instruct: Find the skill\nQuery:"
    embedder = SentenceTransformerEmbedder(
        model=str(encoder), device="cpu", end_token="<|endoftext|>", max_length=1024, query_prompt=prompt
    )
    with serving(encoder, tmp_path / "log") as url:
        for texts, kind in (([*DOCUMENTS, ""], "document"), ([*QUERIES], "query")):
            sent = [prompt + text for text in texts] if kind == "query" else texts
            rows = ask(url, "/v1/embeddings", {"input": sent})
            vectors = np.array([row["embedding"] for row in rows])
            np.testing.assert_allclose(vectors, embedder.encode(texts, kind), atol=TOLERANCE)  # type: ignore[arg-type]
