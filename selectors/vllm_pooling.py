"""Qwen3 rerankers on a vLLM server that runs as a classifier."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from typing import Any, TypeVar

import httpx
import numpy as np
import tenacity
from numpy.typing import NDArray
from pydantic import BaseModel, ValidationError

from skillarena.conf.errors import ConfigError, ModelHostLost, RerankerError
from skillarena.conf.redaction import body_without_key, without_key
from skillarena.selectors.checkpoint import find_checkpoint
from skillarena.selectors.measure import offline
from skillarena.selectors.options import check_counts, check_optional_counts
from skillarena.selectors.parity import load_reference, prove
from skillarena.selectors.qwen3_prompt import PromptTokenizer, Qwen3Prompt, load_prompt_tokenizer

Pair = tuple[str, str]

_PASSING = frozenset({429, 500, 502, 503, 504})
"""Answers that another attempt may turn into scores."""
_LONGEST_WAIT_S = 20.0
_SHOWN = 300
_LARGEST_BODY = 32_000_000
"""Bytes of an answer; one with a score for each pair of a request takes some thousand."""
_Form = TypeVar("_Form", bound=BaseModel)


class _TryAgain(Exception):
    """One attempt failed for a reason that may pass."""


class VllmPoolingReranker:
    """``Qwen3Reranker`` with the weights on a vLLM server: ``vllm serve MODEL --runner pooling``.

    Prompts are put together and cut here and sent as token ids to ``/classify``, so neither a chat template nor a limit
    of the server can change them, and the suffix from which the answer is read always stays. Raw logits are asked for.
    An original checkpoint has to be served with ``--hf-overrides '{"architectures": ["Qwen3ForSequenceClassification"],
    "classifier_from_token": ["no", "yes"], "is_original_qwen3_reranker": true}'``, one that is converted to a
    classifier needs nothing. The server is asked for its models and proved on pairs with known answers before its
    first score is used. Number format and hardware are the server's, so they are not in the identity.

    Args:
        model: a folder or a hub id; its tokenizer is used here, and the server must hold the same model.
        base_url: of the server, before ``/classify``.
        instruction: see ``Qwen3Reranker``.
        separator: likewise.
        max_length: likewise; at most the server's ``--max-model-len``.
        reference: likewise.
        served_name: the model's name on the server; None takes ``model``.
        revision: branch, tag or commit on the hub.
        api_key_env: environment variable that holds the server's key; None for a server that wants none.
        batch_size: pairs in one request.
        connect_timeout_s: seconds to reach the server.
        timeout_s: seconds for each request.
        max_retries: attempts after the first one.

    Raises ``RerankerError`` when the tokenizer is missing or none of a Qwen3 reranker, ``ConfigError`` for a value that
    makes no sense.
    """

    def __init__(
        self,
        *,
        model: str,
        base_url: str,
        instruction: str,
        separator: str,
        max_length: int,
        reference: str,
        served_name: str | None = None,
        revision: str | None = None,
        api_key_env: str | None = None,
        batch_size: int = 64,
        connect_timeout_s: float = 10.0,
        timeout_s: float = 300.0,
        max_retries: int = 5,
    ) -> None:
        check_counts(batch_size=batch_size)
        check_optional_counts(max_length=max_length)
        if not (connect_timeout_s > 0 and timeout_s > 0 and max_retries >= 0):
            raise ConfigError(
                f"connect_timeout_s={connect_timeout_s}, timeout_s={timeout_s} or max_retries={max_retries} is too low",
                "time-outs are above 0, retries at least 0",
            )
        self._url = _checked_url(base_url)
        self._prompt = Qwen3Prompt(instruction, separator)
        self._reference = load_reference(reference)
        self._checkpoint = find_checkpoint(model, revision=revision, marker="config.json")
        self._served_name = served_name or model
        self._max_length = max_length
        self._api_key_env = api_key_env
        self._batch_size = batch_size
        self._timeout = httpx.Timeout(timeout_s, connect=connect_timeout_s)
        self._max_retries = max_retries
        self.identity = f"vllm {self._checkpoint.identity} prompt={self._prompt.fingerprint} max_length={max_length}"

    def score(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """float32[n] logits; equal pairs are scored once.

        Raises:
            RerankerError: the server refuses, answers nonsense, or scores wrongly.
            ModelHostLost: it gave no answer in all attempts.
        """
        if not pairs:
            return np.empty(0, dtype=np.float32)
        distinct = {pair: row for row, pair in enumerate(dict.fromkeys(pairs))}
        logits = self._proved.logits(list(distinct))
        return logits[[distinct[pair] for pair in pairs]]

    @cached_property
    def _proved(self) -> _Server:
        with offline():
            tokenizer = load_prompt_tokenizer(self._checkpoint, self._prompt, self._max_length, self.identity)
            key = self._key()
            headers = {"Authorization": f"Bearer {key}"} if key else {}
            client = httpx.Client(base_url=self._url, headers=headers, timeout=self._timeout, trust_env=False)
            server = _Server(
                client, key, tokenizer, self._served_name, self._batch_size, self._max_length, self._max_retries
            )
            server.check()
        prove(server.logits, self._reference, self.identity)
        return server

    def _key(self) -> str:
        key = os.environ.get(self._api_key_env, "").strip() if self._api_key_env else ""
        if self._api_key_env and not (key and key.isascii() and key.isprintable()):
            raise RerankerError(
                f"the environment variable {self._api_key_env} is not set, or holds characters that no key has",
                "set it to the key of the server",
            )
        return key


class _Server:
    """The server over HTTP."""

    def __init__(
        self,
        client: httpx.Client,
        key: str,
        tokenizer: PromptTokenizer,
        model: str,
        batch_size: int,
        max_length: int,
        max_retries: int,
    ) -> None:
        self._client = client
        self._key = key
        self._tokenizer = tokenizer
        self._model = model
        self._batch_size = batch_size
        self._max_length = max_length
        self._retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(_TryAgain),
            stop=tenacity.stop_after_attempt(max_retries + 1),
            wait=tenacity.wait_random_exponential(multiplier=0.5, max=_LONGEST_WAIT_S),
            reraise=True,
        )

    def check(self) -> None:
        """Raises ``RerankerError`` when the server has another model, or too short prompts."""
        served = {entry.id: entry for entry in self._ask("GET", "/v1/models", _Models).data}
        if self._model not in served:
            raise RerankerError(
                f"{self._client.base_url} serves {', '.join(served) or 'nothing'}, not {self._model!r}",
                "set reranker.served_name to the model's name on the server",
            )
        longest = served[self._model].max_model_len or self._max_length
        if longest < self._max_length:
            raise RerankerError(
                f"{self._client.base_url} takes {longest} tokens, fewer than reranker.max_length={self._max_length}",
                "lower reranker.max_length, or serve with a larger --max-model-len",
            )

    def logits(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """float32[n]. The server forms its own batches; requests only bound the size of a message."""
        prompts = self._tokenizer.token_ids(pairs)
        requests = [prompts[first : first + self._batch_size] for first in range(0, len(prompts), self._batch_size)]
        logits = np.array([logit for request in requests for logit in self._classify(request)], dtype=np.float32)
        if not np.isfinite(logits).all():
            raise RerankerError(f"{self._model} gives infinite or undefined scores", "serve it with --dtype float32")
        return logits

    def _classify(self, prompts: list[list[int]]) -> list[float]:
        body = {"model": self._model, "input": prompts, "use_activation": False}
        rows = sorted(self._ask("POST", "/classify", _Classes, body).data, key=lambda row: row.index)
        if [row.index for row in rows] != list(range(len(prompts))) or any(len(row.probs) != 1 for row in rows):
            raise RerankerError(
                f"{self._client.base_url}/classify gave {len(rows)} answers of {_classes(rows)} classes"
                f" to {len(prompts)} pairs",
                "serve a reranker with one score: --runner pooling, and --hf-overrides for an original checkpoint",
            )
        return [row.probs[0] for row in rows]

    def _ask(self, method: str, path: str, form: type[_Form], body: Any = None) -> _Form:
        try:
            answer: _Form = self._retrying(self._attempt, method, path, form, body)
        except _TryAgain as error:
            raise ModelHostLost(
                f"the reranker's server {self._client.base_url} gave no answer: {error}", "see whether it still runs"
            ) from error
        return answer

    def _attempt(self, method: str, path: str, form: type[_Form], body: Any) -> _Form:
        received = bytearray()
        try:
            with self._client.stream(method, path, json=body) as response:
                for chunk in response.iter_bytes():
                    received += chunk
                    if len(received) > _LARGEST_BODY:
                        raise RerankerError(
                            f"{self._client.base_url}{path} answers with more than {_LARGEST_BODY:,} bytes",
                            "check reranker.base_url",
                        )
        except httpx.RequestError as error:  # a broken connection, or a body that cannot be unpacked
            raise _TryAgain(f"{type(error).__name__} {without_key(str(error), self._key)}") from None  # has the key
        content = body_without_key(bytes(received), self._key)
        shown = without_key(content.decode("utf-8", "replace"), self._key)[:_SHOWN]
        if response.status_code in _PASSING:
            raise _TryAgain(f"status {response.status_code}: {shown}")
        if not response.is_success:
            raise RerankerError(
                f"{self._client.base_url}{path} refuses with status {response.status_code}: {shown}",
                "check reranker.base_url, reranker.api_key_env, and that the server runs with --runner pooling",
            )
        try:
            return form.model_validate_json(content)
        except ValidationError:
            raise RerankerError(
                f"{self._client.base_url}{path} answers with something else than vLLM does: {shown}",
                "check reranker.base_url",
            ) from None


class _Model(BaseModel):
    id: str
    max_model_len: int | None = None


class _Models(BaseModel):
    data: list[_Model]


class _Row(BaseModel):
    index: int
    probs: list[float]


class _Classes(BaseModel):
    data: list[_Row]


def _classes(rows: list[_Row]) -> str:
    return "/".join(sorted({str(len(row.probs)) for row in rows})) or "no"


def _checked_url(base_url: str) -> str:
    try:
        url = httpx.URL(base_url)
    except httpx.InvalidURL:  # its text may be a part of a password
        url = httpx.URL()
    if url.scheme not in ("http", "https") or not url.host or url.query or "@" in base_url:
        raise ConfigError(
            "reranker.base_url must be http(s)://HOST:PORT without password and query",
            "set it to the server's address; keys go into reranker.api_key_env",
        )
    return base_url.rstrip("/").removesuffix("/v1")
