"""A reranker on a server asks for raw logits of exactly its prompts, and believes nothing the server has not proved."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reranker_contract import PAIRS, RerankerContract
from tiny_qwen3 import INSTRUCTION, KNOWN, MAX_LENGTH, make_causal

from skillarena.conf.errors import ConfigError, ModelHostLost, RerankerError
from skillarena.selectors.checkpoint import find_checkpoint
from skillarena.selectors.interface import Reranker
from skillarena.selectors.qwen3_prompt import PromptTokenizer, Qwen3Prompt, load_prompt_tokenizer
from skillarena.selectors.vllm_pooling import VllmPoolingReranker

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_thread")]


def logit_of(ids: list[int]) -> float:
    """A score that every token and its place change."""
    return 9 * math.sin(sum(place * token for place, token in enumerate(ids, 1)))


class Server(ThreadingHTTPServer):
    """Answers like vLLM, with ``logit_of`` for a model; ``faults`` are given out first, one for each request."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.faults: list[tuple[int, bytes]] = []
        self.requests: list[dict[str, Any]] = []
        self.keys: set[str | None] = set()
        self.squash: Callable[[float], float] = lambda logit: logit
        self.classes = 1
        self.models = [{"id": "tiny", "max_model_len": 1024}]


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *args: Any) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        self.server.keys.add(self.headers["Authorization"])
        found = self.path == "/v1/models"
        self._answer(200 if found else 404, json.dumps({"data": self.server.models if found else []}).encode())

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.server.faults:
            self._answer(*self.server.faults.pop(0))
            return
        assert self.path == "/classify"
        self.server.requests.append(body)
        scores = [self.server.squash(logit_of(ids)) for ids in body["input"]]
        data = [{"index": row, "probs": [score] * self.server.classes} for row, score in enumerate(scores)]
        self._answer(200, json.dumps({"data": data[::-1]}).encode())

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_causal(tmp_path_factory.mktemp("causal"))


@pytest.fixture(scope="module")
def tokenizer(model: Path) -> PromptTokenizer:
    checkpoint = find_checkpoint(str(model), revision=None, marker="config.json")
    return load_prompt_tokenizer(checkpoint, Qwen3Prompt(INSTRUCTION, "newline"), MAX_LENGTH, "tiny")


@pytest.fixture(scope="module")
def reference(tokenizer: PromptTokenizer, tmp_path_factory: pytest.TempPathFactory) -> str:
    known = [
        {"query": query, "document": document, "relevant": True, "logit": logit_of(ids)}
        for (query, document), ids in zip(KNOWN, tokenizer.token_ids(KNOWN), strict=True)
    ]
    path = tmp_path_factory.mktemp("reference") / "known.json"
    path.write_text(json.dumps({"about": "the stand-in", "tolerance": 0.001, "pairs": known}))
    return str(path)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield running
        running.shutdown()


@pytest.fixture
def make(model: Path, reference: str, server: Server) -> Callable[..., VllmPoolingReranker]:
    def build(**changes: Any) -> VllmPoolingReranker:
        options = {
            "model": str(model),
            "base_url": server.url,
            "served_name": "tiny",
            "instruction": INSTRUCTION,
            "separator": "newline",
            "max_length": MAX_LENGTH,
            "reference": reference,
            "timeout_s": 20.0,
            "max_retries": 2,
        }
        return VllmPoolingReranker(**{**options, **changes})  # type: ignore[arg-type]

    return build


Make = Callable[..., VllmPoolingReranker]


class TestVllmPoolingContract(RerankerContract):
    @pytest.fixture
    def reranker(self, make: Make) -> Reranker:
        return make()


def test_it_sends_whole_prompts_as_ids_and_asks_for_raw_logits(
    make: Make, server: Server, tokenizer: PromptTokenizer
) -> None:
    scores = make(batch_size=5).score([*PAIRS, PAIRS[0]])
    ids = tokenizer.token_ids(PAIRS)
    np.testing.assert_allclose(scores, [*map(logit_of, ids), logit_of(ids[0])], atol=1e-5)
    proof, *requests = server.requests
    assert [len(request["input"]) for request in requests] == [5, 5, 2]
    assert [prompt for request in requests for prompt in request["input"]] == ids
    assert proof["input"] == tokenizer.token_ids(KNOWN)
    for request in server.requests:
        assert set(request) == {"model", "input", "use_activation"}
        assert (request["model"], request["use_activation"]) == ("tiny", False)


def test_answers_that_may_pass_are_asked_for_again(make: Make, server: Server) -> None:
    server.faults = [(503, b"busy"), (429, b"slow down")]
    assert make().score(PAIRS).shape == (len(PAIRS),)


def test_a_server_that_stays_away_can_be_tried_again_later(make: Make, server: Server) -> None:
    reranker = make(max_retries=1)
    server.faults = [(500, b"no"), (502, b"still no")]
    with pytest.raises(ModelHostLost, match="gave no answer: status 502: still no"):
        reranker.score(PAIRS)
    assert reranker.score(PAIRS).shape == (len(PAIRS),)
    with pytest.raises(ModelHostLost, match="ConnectError"):
        make(base_url="http://127.0.0.1:1", max_retries=1).score(PAIRS)


def test_a_refusal_is_not_repeated(make: Make, server: Server) -> None:
    server.faults = [(400, b"too long"), (200, b"never asked for")]
    with pytest.raises(RerankerError, match=r"/classify refuses with status 400: too long"):
        make().score(PAIRS)
    assert len(server.faults) == 1


@pytest.mark.parametrize("body", [b"<html>", b"[1]", b'{"data": 3}', b"{}"])
def test_something_else_than_vllm_is_recognised(make: Make, server: Server, body: bytes) -> None:
    server.faults = [(200, body)]
    with pytest.raises(RerankerError, match="something else than vLLM"):
        make().score(PAIRS)


def test_a_server_of_another_model_or_kind_is_refused(make: Make, server: Server) -> None:
    with pytest.raises(RerankerError, match="serves tiny, not 'other'") as caught:
        make(served_name="other").score(PAIRS)
    assert "served_name" in caught.value.fix
    server.classes = 3
    with pytest.raises(RerankerError, match="5 answers of 3 classes to 5 pairs"):
        make().score(PAIRS)
    server.models = [{"id": "tiny", "max_model_len": 256}]
    with pytest.raises(RerankerError, match=r"takes 256 tokens, fewer than reranker\.max_length=512"):
        make().score(PAIRS)


def test_a_server_that_squashes_scores_is_found_out(make: Make, server: Server) -> None:
    server.squash = lambda logit: 1 / (1 + math.exp(-logit))
    with pytest.raises(RerankerError, match="something applied a sigmoid") as caught:
        make().score(PAIRS)
    assert "use_activation=false" in caught.value.fix
    once = server.squash
    server.squash = lambda logit: once(once(logit))
    with pytest.raises(RerankerError, match="sigmoid twice"):
        make().score(PAIRS)
    server.squash = lambda logit: -logit
    with pytest.raises(RerankerError, match="swapped"):
        make().score(PAIRS)


def test_the_key_comes_from_the_environment(make: Make, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TINY_KEY", "s3cret")
    reranker = make(api_key_env="TINY_KEY")
    reranker.score(PAIRS)
    assert server.keys == {"Bearer s3cret"}
    assert "s3cret" not in reranker.identity
    monkeypatch.delenv("TINY_KEY")
    with pytest.raises(RerankerError, match="variable TINY_KEY is not set"):
        make(api_key_env="TINY_KEY").score(PAIRS)


def test_identity_is_of_what_is_asked_and_not_of_where(make: Make) -> None:
    assert make(base_url="http://elsewhere:1", batch_size=1).identity == make().identity
    assert make(separator="blank_line").identity != make().identity
    assert make(max_length=300).identity != make().identity


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "ftp://host", "http://user:word@host", "http://host?key=1"])
def test_urls_with_secrets_or_of_another_kind_are_refused(make: Make, url: str) -> None:
    with pytest.raises(ConfigError, match=r"reranker\.base_url must be") as caught:
        make(base_url=url)
    assert "word" not in str(caught.value).replace("password", "")


def test_values_out_of_range_are_refused(make: Make) -> None:
    for change in ({"timeout_s": 0}, {"connect_timeout_s": -1}, {"max_retries": -1}):
        with pytest.raises(ConfigError, match="is too low"):
            make(**change)
